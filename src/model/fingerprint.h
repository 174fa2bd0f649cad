#ifndef KVICK_MODEL_FINGERPRINT_H_
#define KVICK_MODEL_FINGERPRINT_H_

#include <string>

#include "model/model_file.h"

namespace kvick {

// 32 hexadecimal digits that tell a model from others: of its numbers, its norms and biases, and
// samples of every matrix. Two models of which one was made from the other, however little it was
// trained on, differ; so do the same weights in another type. Where the file lies is not part of
// it. Cost: reads 64 pages of each matrix, whatever its size.
std::string Fingerprint(const ModelFile& model);

}  // namespace kvick

#endif  // KVICK_MODEL_FINGERPRINT_H_
