#ifndef KVICK_MODEL_FORWARD_REF_H_
#define KVICK_MODEL_FORWARD_REF_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_file.h"

namespace kvick {

// The logits of every position, [T, V], in double precision: no cache, no chunks, no threads. The
// reference for Forward. Cost: T passes over all weights, one multiplication at a time.
// REQUIRES: tokens within the vocabulary.
std::vector<double> ForwardRef(const ModelFile& file, std::span<const int32_t> tokens);

}  // namespace kvick

#endif  // KVICK_MODEL_FORWARD_REF_H_
