#ifndef KVICK_ENGINE_REQUEST_CHECK_H_
#define KVICK_ENGINE_REQUEST_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvick/engine.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// Errors  invalid_argument: no token, or more than the context; one out of the vocabulary
Status CheckPrompt(std::span<const int32_t> prompt, const ModelInfo& info, int64_t context_tokens);

// Errors  invalid_argument: other than [tokens, vocabulary]
Status CheckLogitsSize(size_t num_logits, size_t num_tokens, const ModelInfo& info);

// Errors  invalid_argument: an empty prompt or one longer than the context, a token out of the
//         vocabulary, an option out of its range, a stop string that is empty or cannot be found
Status CheckRequest(const GenerateRequest& request, const Model& model, int64_t context_tokens);

}  // namespace kvick

#endif  // KVICK_ENGINE_REQUEST_CHECK_H_
