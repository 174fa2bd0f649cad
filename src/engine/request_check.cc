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
                "engine: prompt: expected 1 to {} tokens (the context), got {}", context_tokens,
                prompt.size());
  }
  for (const int32_t id : prompt) {
    if (id < 0 || id >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument,
                  "engine: prompt: expected tokens from 0 to {}, got {}", vocab_size - 1, id);
    }
  }
  return {};
}

Status CheckLogitsSize(size_t num_logits, size_t num_tokens, const ModelInfo& info) {
  const size_t num_expected = num_tokens * static_cast<size_t>(info.vocab_size);
  if (num_logits == num_expected) return {};
  return Fail(ErrorCode::kInvalidArgument, "engine: expected a buffer of {} logits, got {}",
              num_expected, num_logits);
}

Status CheckRequest(const GenerateRequest& request, const Model& model, int64_t context_tokens) {
  const int64_t vocab_size = model.info().vocab_size;
  KVICK_RETURN_IF_ERROR(CheckPrompt(request.prompt, model.info(), context_tokens));
  KVICK_RETURN_IF_ERROR(CheckSampling(request.sampling, vocab_size));
  if (request.max_new_tokens < 0) {
    return Fail(ErrorCode::kInvalidArgument, "engine: max_new_tokens: expected 0 or more, got {}",
                request.max_new_tokens);
  }
  constexpr int64_t kMaxSamples = 1 << 16;
  if (request.num_samples < 1 || request.num_samples > kMaxSamples) {
    return Fail(ErrorCode::kInvalidArgument, "engine: num_samples: expected 1 to {}, got {}",
                kMaxSamples, request.num_samples);
  }
  if (!request.stop.empty() && !model.has_tokenizer()) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: stop: expected a model with a tokenizer, got one without");
  }
  const auto is_empty = [](const std::string& stop) { return stop.empty(); };
  if (std::any_of(request.stop.begin(), request.stop.end(), is_empty)) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: stop: expected strings of at least one byte, got an empty one");
  }
  return {};
}

}  // namespace kvick
