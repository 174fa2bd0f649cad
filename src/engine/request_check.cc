#include "engine/request_check.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "engine/sampler.h"

namespace kvick {

Status CheckPrompt(std::span<const int32_t> prompt, const ModelInfo& info, int64_t context_tokens) {
  const int64_t vocab_size = info.vocab_size;
  if (prompt.empty() || std::ssize(prompt) > context_tokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: a prompt of {} tokens, 1 to {} (the context) are possible", prompt.size(),
                context_tokens);
  }
  for (const int32_t id : prompt) {
    if (id < 0 || id >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument,
                  "engine: token {} in a prompt, the vocabulary is 0 to {}", id, vocab_size - 1);
    }
  }
  return {};
}

Status CheckLogitsSize(size_t num_logits, size_t num_tokens, const ModelInfo& info) {
  const size_t wanted = num_tokens * static_cast<size_t>(info.vocab_size);
  if (num_logits == wanted) return {};
  return Fail(ErrorCode::kInvalidArgument, "engine: room for {} logits, {} are computed",
              num_logits, wanted);
}

Status CheckRequest(const GenerateRequest& request, const Model& model, int64_t context_tokens) {
  const int64_t vocab_size = model.info().vocab_size;
  KVICK_RETURN_IF_ERROR(CheckPrompt(request.prompt, model.info(), context_tokens));
  KVICK_RETURN_IF_ERROR(CheckSampling(request.sampling, vocab_size));
  if (request.max_new_tokens < 0) {
    return Fail(ErrorCode::kInvalidArgument, "engine: max_new_tokens is {}, 0 or more is wanted",
                request.max_new_tokens);
  }
  constexpr int64_t kMaxSamples = 1 << 16;
  if (request.num_samples < 1 || request.num_samples > kMaxSamples) {
    return Fail(ErrorCode::kInvalidArgument, "engine: num_samples is {}, 1 to {} is possible",
                request.num_samples, kMaxSamples);
  }
  if (!request.stop.empty() && !model.has_tokenizer()) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: stop strings are wanted of a model without a tokenizer");
  }
  const auto is_empty = [](const std::string& stop) { return stop.empty(); };
  if (std::any_of(request.stop.begin(), request.stop.end(), is_empty)) {
    return Fail(ErrorCode::kInvalidArgument, "engine: a stop string is empty");
  }
  return {};
}

}  // namespace kvick
