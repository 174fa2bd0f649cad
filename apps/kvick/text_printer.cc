#include "text_printer.h"

#include <cstdio>

namespace kvick::cli {

TextPrinter::TextPrinter(const Model& model, std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) {
    streams_.push_back({model.Decode(request.prompt).value_or("")});
  }
}

bool TextPrinter::Append(size_t request_idx, std::string_view text) {
  Stream& stream = streams_[request_idx];
  stream.waiting += text;
  stream.num_appended += text.size();
  Flush();
  return std::ferror(stdout) == 0;
}

void TextPrinter::Finish(size_t request_idx, std::string_view text) {
  Stream& stream = streams_[request_idx];
  stream.waiting += text.substr(stream.num_appended);
  stream.waiting += '\n';
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
