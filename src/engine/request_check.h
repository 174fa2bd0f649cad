#ifndef KVICK_ENGINE_REQUEST_CHECK_H_
#define KVICK_ENGINE_REQUEST_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvick/engine.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// Errors  invalid_argument: no token, more than the context, or one outside of the vocabulary
Status CheckPrompt(std::span<const int32_t> prompt, const ModelInfo& info, int64_t context_tokens);

// Errors  invalid_argument: not num_tokens * vocab_size
Status CheckLogitsSize(size_t num_logits, size_t num_tokens, const ModelInfo& info);

// Errors  invalid_argument: as CheckPrompt; an option out of range; an empty stop string;
//         any stop string for a model without a tokenizer
Status CheckRequest(const GenerateRequest& request, const Model& model, int64_t context_tokens);

}  // namespace kvick

#endif  // KVICK_ENGINE_REQUEST_CHECK_H_
