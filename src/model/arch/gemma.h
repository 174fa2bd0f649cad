#ifndef KVICK_MODEL_ARCH_GEMMA_H_
#define KVICK_MODEL_ARCH_GEMMA_H_

#include <cstdint>

#include "kvick/status.h"
#include "model/arch/config_fields.h"
#include "model/model_spec.h"

namespace kvick {

// What Gemma 2 and 3 have in common: a norm before and after each branch, weights of norms from
// which 1 is missing (in folders), GELU, an embedding times sqrt(hidden_size), an output that is
// the embedding, and a scale of scores of its own.
//
// A GGUF file does not hold that scale. As llama.cpp: 1 / sqrt(hidden_size / num_heads) in the
// largest model, which is known by its number of layers, else 1 / sqrt(head_dim).
Status DescribeGemma(const ConfigFields& fields, int64_t layers_of_largest, ModelSpec& spec);

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_GEMMA_H_
