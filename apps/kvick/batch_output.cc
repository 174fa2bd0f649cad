#include "batch_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "line_reader.h"
#include "terminal.h"
#include "wake_pipe.h"

namespace kvick::cli {
namespace {

// What a file is and how long; nullopt: it is none.
std::optional<struct stat> StatFile(int fd) {
  struct stat stat;
  if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return std::nullopt;
  return stat;
}

bool AreSameFile(int a, int b) {
  const auto stat_a = StatFile(a), stat_b = StatFile(b);
  return stat_a && stat_b && stat_a->st_dev == stat_b->st_dev && stat_a->st_ino == stat_b->st_ino;
}

// Whether a result line may begin like this.
bool IsTornResult(std::string_view text) {
  constexpr std::string_view kBegin = R"({"id":)";
  return text.substr(0, kBegin.size()) == kBegin.substr(0, text.size());
}

}  // namespace

Result<ResultFile> ResultFile::Open(const std::string& path, OutputStart start, int input_fd) {
  const bool is_stdout = path == "-";
  Descriptor output(STDOUT_FILENO);
  if (!is_stdout) {
    KVICK_ASSIGN_OR_RETURN(output, Descriptor::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  }
  const std::string name = is_stdout ? "stdout" : ShownName(path);
  if (AreSameFile(output.fd(), input_fd)) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected another file than the input", name);
  }
  ResultFile file(name, std::move(output));
  if (is_stdout) return file;
  if (start == OutputStart::kResume) {
    KVICK_RETURN_IF_ERROR(file.ReadWritten(path));
    return file;
  }
  const std::optional<struct stat> stat = StatFile(file.output_.fd());
  if (!stat || stat->st_size == 0) return file;
  if (start == OutputStart::kNew) {
    return Fail(ErrorCode::kInvalidArgument,
                "{}: expected a new file, got one of {} bytes (--resume adds the results that it "
                "lacks, --force overwrites it)",
                name, stat->st_size);
  }
  if (ftruncate(file.output_.fd(), 0) == 0) return file;
  return Fail(ErrorCode::kIo, "{}: cannot truncate: {}", name, std::strerror(errno));
}

Status ResultFile::ReadWritten(const std::string& path) {
  if (!StatFile(output_.fd())) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected a file to resume from", name_);
  }
  KVICK_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  while (true) {
    const std::optional<Line> line = reader.Take();
    if (!line && reader.is_at_end()) return {};
    if (!line) {
      KVICK_RETURN_IF_ERROR(reader.Read());
      continue;
    }
    if (!line->is_ended) {  // the last
      if (!IsTornResult(line->text)) {
        return Fail(ErrorCode::kCorrupt,
                    "{}: expected results of kvick batch, the last line is none", name_);
      }
      if (ftruncate(output_.fd(), line->first_byte) == 0) return {};
      return Fail(ErrorCode::kIo, "{}: cannot truncate: {}", name_, std::strerror(errno));
    }
    if (const Status status = written_.Add(line->text); !status) {
      return Fail(ErrorCode::kCorrupt, "{}: expected results of kvick batch, line {} is none: {}",
                  name_, line->number, status.error().message);
    }
  }
}

// A reader that is slow must not keep a signal waiting.
Status ResultFile::WaitUntilWritable() const {
  pollfd waited = {output_.fd(), POLLOUT, 0};
  if (CaughtSignal() == 0) poll(&waited, 1, -1);
  if (CaughtSignal() == 0) return {};
  return Fail(ErrorCode::kCancelled, "{}: stopped before all finished results were written", name_);
}

Status ResultFile::Append(std::string_view lines) {
  const std::optional<struct stat> before = StatFile(output_.fd());
  const std::string_view all = lines;
  while (!lines.empty()) {
    const ssize_t num_written = write(output_.fd(), lines.data(), lines.size());
    if (num_written < 0 && (errno == EINTR || errno == EAGAIN)) {
      KVICK_RETURN_IF_ERROR(WaitUntilWritable());
      continue;
    }
    if (num_written < 0) {
      const int error = errno;
      const size_t num_done = all.size() - lines.size();
      const size_t num_whole = all.substr(0, num_done).rfind('\n') + 1;  // npos + 1 is 0
      if (before && num_whole < num_done) {
        [[maybe_unused]] const int ignored =
            ftruncate(output_.fd(), before->st_size + static_cast<off_t>(num_whole));
      }
      return Fail(ErrorCode::kIo, "{}: cannot write: {}", name_, std::strerror(error));
    }
    lines.remove_prefix(static_cast<size_t>(num_written));
  }
  return {};
}

int64_t ResultQueue::Expect(int64_t num_results) {
  if (order_ == ResultOrder::kOfInput) {
    requests_.emplace_back().lines.resize(static_cast<size_t>(num_results));
    num_held_ += num_results;
  }
  return num_expected_++;
}

void ResultQueue::Put(int64_t place, int64_t index, std::string line) {
  if (order_ == ResultOrder::kOfCompletion) {
    ready_ += line;
    return;
  }
  const int64_t first_place = num_expected_ - std::ssize(requests_);
  Results& results = requests_[static_cast<size_t>(place - first_place)];
  results.lines[static_cast<size_t>(index)] = std::move(line);
}

std::string ResultQueue::TakeRest() {
  for (; !requests_.empty(); requests_.pop_front()) {
    for (const auto& line : requests_.front().lines) ready_ += line.value_or("");
  }
  num_held_ = 0;
  return std::exchange(ready_, {});
}

std::string ResultQueue::Take() {
  for (; !requests_.empty(); requests_.pop_front()) {
    Results& first = requests_.front();
    while (first.num_taken < first.lines.size() && first.lines[first.num_taken]) {
      ready_ += *std::exchange(first.lines[first.num_taken++], std::nullopt);
      --num_held_;
    }
    if (first.num_taken < first.lines.size()) break;
  }
  return std::exchange(ready_, {});
}

}  // namespace kvick::cli
