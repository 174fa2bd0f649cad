#ifndef KVICK_APPS_KVICK_LINE_READER_H_
#define KVICK_APPS_KVICK_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "descriptor.h"
#include "kvick/status.h"

namespace kvick::cli {

struct Line {
  // Without its end, nor the byte order mark of the first line; empty where it is too long.
  std::string text;
  int64_t number = 0;  // from 1
  int64_t first_byte = 0;
  bool is_ended = true;  // false: the text ends without a newline
  bool is_too_long = false;
};

// The lines of a file or a pipe. Read and Take are apart, so that the caller can wait for other
// things too. Memory: kMaxLineBytes, and what one read gives.
class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

  // "-" is stdin. Errors: io, invalid_argument: a folder.
  static Result<LineReader> Open(const std::string& path);

  // One read; waits where nothing is there. Errors: io; invalid_argument: a line without an end.
  Status Read();
  // The next line that has been read as a whole.
  std::optional<Line> Take();
  // Nothing more to read. Take may still have lines.
  bool is_at_end() const { return is_at_end_; }
  int fd() const { return input_.fd(); }

 private:
  LineReader(std::string name, Descriptor input)
      : name_(std::move(name)), input_(std::move(input)) {}

  // The line that ends before byte `end` of buffer_, and `end_bytes` that end it.
  Line TakeUntil(size_t end, size_t end_bytes);
  // Forgets the beginning of a line that is too long.
  Status DropExcess();

  std::string name_;
  Descriptor input_;
  std::string buffer_;
  size_t begin_ = 0;     // of what was not taken, in buffer_
  size_t searched_ = 0;  // there is no newline between begin_ and here
  int64_t num_taken_bytes_ = 0;
  int64_t num_dropped_bytes_ = 0;  // of the present line
  int64_t num_lines_ = 0;
  bool is_at_end_ = false;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_LINE_READER_H_
