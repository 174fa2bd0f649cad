#include <memory>
#include <optional>
#include <string>

#include "formats/tokenizer.h"
#include "formats/utf8_stream.h"
#include "kvick/model.h"
#include "model/model_parts.h"

namespace kvick {

struct TextStream::State {
  std::optional<Detokenizer> detokenizer;  // none: ids are shown
  Utf8Stream utf8{InvalidUtf8::kReplace};
};

TextStream::TextStream(const Model& model) : state_(std::make_unique<State>()) {
  const Result<Tokenizer>& tokenizer = model.parts().tokenizer;
  if (tokenizer) state_->detokenizer.emplace(*tokenizer, DecodeFrom::kTextRest);
}

TextStream::TextStream(TextStream&& other) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::Append(int32_t token) {
  if (!state_->detokenizer) return std::to_string(token) + ' ';
  return state_->utf8.Push(state_->detokenizer->Append(token));
}

std::string TextStream::Finish() { return state_->utf8.Finish(); }

}  // namespace kvick
