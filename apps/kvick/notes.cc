#include "notes.h"

#include <fmt/format.h>

#include "terminal.h"

namespace kvick::cli {

void NoteContext(const ContextSize& context, const ModelInfo& info, std::string_view why_capped) {
  if (context.tokens > info.max_positions) {
    Note(
        fmt::format("the context is {} tokens, more than the {} that the model was trained for: "
                    "text beyond them may make no sense",
                    context.tokens, info.max_positions));
  }
  if (!context.is_capped) return;
  Note(fmt::format("the context is {} of the model's {} tokens: {}", context.tokens,
                   info.max_positions, why_capped));
}

std::string NanWarning(const NanLogits& nan_logits) {
  return fmt::format(
      "{} logits were NaN, first that of token {} for new token {}: these tokens were never chosen "
      "(the weights may be damaged)",
      nan_logits.count, nan_logits.first_token, nan_logits.first_index);
}

}  // namespace kvick::cli
