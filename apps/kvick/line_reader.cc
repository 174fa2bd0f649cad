#include "line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "input_text.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr int64_t kMaxDroppedBytes = int64_t{1} << 30;  // of a line: /dev/zero has no end

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path) {
  if (path == "-") return LineReader("stdin", Descriptor(STDIN_FILENO));
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected a file, got a folder", ShownName(path));
  }
  KVICK_ASSIGN_OR_RETURN(Descriptor input, Descriptor::Open(path, O_RDONLY));
  return LineReader(ShownName(path), std::move(input));
}

Status LineReader::Read() {
  constexpr size_t kReadBytes = size_t{64} << 10;
  buffer_.erase(0, begin_);
  searched_ -= std::exchange(begin_, 0);
  const size_t num_before = buffer_.size();
  buffer_.resize(num_before + kReadBytes);
  const ssize_t num_read = read(input_.fd(), buffer_.data() + num_before, kReadBytes);
  const int error = errno;
  buffer_.resize(num_before + static_cast<size_t>(std::max<ssize_t>(num_read, 0)));
  if (num_read > 0) return DropExcess();
  if (num_read < 0 && (error == EINTR || error == EAGAIN)) return {};
  is_at_end_ = true;
  if (num_read == 0) return {};
  return Fail(ErrorCode::kIo, "{}: cannot read: {}", name_, std::strerror(error));
}

Status LineReader::DropExcess() {
  if (num_dropped_bytes_ == 0 && buffer_.size() <= kMaxLineBytes) return {};
  const size_t num_bytes = std::min(buffer_.find('\n', searched_), buffer_.size());
  if (num_dropped_bytes_ == 0 && num_bytes <= kMaxLineBytes) return {};
  num_dropped_bytes_ += static_cast<int64_t>(num_bytes);
  buffer_.erase(0, num_bytes);
  searched_ = 0;
  if (num_dropped_bytes_ <= kMaxDroppedBytes) return {};
  is_at_end_ = true;
  return Fail(ErrorCode::kInvalidArgument, "{}: line {}: expected an end of the line, got {} bytes",
              name_, num_lines_ + 1, num_dropped_bytes_);
}

std::optional<Line> LineReader::Take() {
  const size_t newline = buffer_.find('\n', searched_);
  if (newline != std::string::npos) return TakeUntil(newline, 1);
  searched_ = buffer_.size();
  if (!is_at_end_ || (begin_ == buffer_.size() && num_dropped_bytes_ == 0)) return std::nullopt;
  Line line = TakeUntil(buffer_.size(), 0);
  line.is_ended = false;
  return line;
}

Line LineReader::TakeUntil(size_t end, size_t end_bytes) {
  Line line;
  line.number = ++num_lines_;
  line.first_byte = num_taken_bytes_;
  line.is_too_long = num_dropped_bytes_ > 0;
  if (!line.is_too_long) line.text = buffer_.substr(begin_, end - begin_);
  if (line.number == 1) line.text = WithoutByteOrderMark(line.text);
  num_taken_bytes_ += std::exchange(num_dropped_bytes_, 0);
  num_taken_bytes_ += static_cast<int64_t>(end + end_bytes - begin_);
  begin_ = searched_ = end + end_bytes;
  return line;
}

}  // namespace kvick::cli
