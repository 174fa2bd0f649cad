#include "text_printer.h"

#include <cstdio>

namespace kvick::cli {

TextPrinter::TextPrinter(const Model& model, std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) {
    streams_.push_back({TextStream(model), model.Decode(request.prompt).value_or("")});
  }
}

bool TextPrinter::Append(int64_t request_idx, int32_t token) {
  Stream& stream = streams_[static_cast<size_t>(request_idx)];
  stream.waiting += stream.text.Append(token);
  Flush();
  return std::ferror(stdout) == 0;
}

void TextPrinter::Finish(int64_t request_idx) {
  Stream& stream = streams_[static_cast<size_t>(request_idx)];
  stream.waiting += stream.text.Finish() + '\n';
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
