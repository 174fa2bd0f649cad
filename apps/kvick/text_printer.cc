#include "text_printer.h"

#include <cstdio>

#include "model/model_parts.h"

namespace kvick::cli {

std::string ContinuationText(const Model& model, std::span<const int32_t> tokens) {
  Detokenizer detokenizer(*model.parts().tokenizer, DecodeFrom::kTextRest);
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Append(token);
  return text;
}

TextPrinter::TextPrinter(const Model& model, std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) {
    Stream& stream = streams_.emplace_back();
    if (!model.has_tokenizer()) continue;
    stream.detokenizer.emplace(*model.parts().tokenizer, DecodeFrom::kTextRest);
    stream.waiting = stream.utf8.Push(model.parts().tokenizer->Decode(request.prompt));
  }
}

bool TextPrinter::Append(int64_t request_idx, int32_t token) {
  Stream& stream = streams_[static_cast<size_t>(request_idx)];
  if (stream.detokenizer) {
    stream.waiting += stream.utf8.Push(stream.detokenizer->Append(token));
  } else {
    stream.waiting += std::to_string(token) + ' ';
  }
  Flush();
  return std::ferror(stdout) == 0;
}

void TextPrinter::Finish(int64_t request_idx) {
  Stream& stream = streams_[static_cast<size_t>(request_idx)];
  stream.waiting += stream.utf8.Finish() + '\n';
  stream.is_finished = true;
  Flush();
}

void TextPrinter::Flush() {
  for (; current_ < streams_.size(); ++current_) {
    Stream& stream = streams_[current_];
    std::fwrite(stream.waiting.data(), 1, stream.waiting.size(), stdout);
    stream.waiting.clear();
    if (!stream.is_finished) break;
    if (current_ + 1 < streams_.size()) std::fputc('\n', stdout);  // an empty line between texts
  }
  std::fflush(stdout);
}

}  // namespace kvick::cli
