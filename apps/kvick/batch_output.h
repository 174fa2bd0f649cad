#ifndef KVICK_APPS_KVICK_BATCH_OUTPUT_H_
#define KVICK_APPS_KVICK_BATCH_OUTPUT_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch_result.h"
#include "descriptor.h"
#include "kvick/status.h"

namespace kvick::cli {

enum class OutputStart {
  kAnew,
  kResume,  ///< behind what is there; a last line that a crash has torn is cut off
};

// The file that results are appended to, line by whole line.
class ResultFile {
 public:
  // "-" is stdout. `input_fd` must be another file.
  // Errors: io; invalid_argument: the input; corrupt: what is there are no results.
  static Result<ResultFile> Open(const std::string& path, OutputStart start, int input_fd);

  // Errors: io; a line that was begun is cut off again, where that is possible.
  Status Append(std::string_view lines);
  // With kResume: what was there.
  const WrittenResults& written() const { return written_; }

 private:
  ResultFile(std::string name, Descriptor output)
      : name_(std::move(name)), output_(std::move(output)) {}

  Status ReadWritten(const std::string& path);
  // Errors: cancelled: a signal was caught.
  Status WaitUntilWritable() const;

  std::string name_;
  Descriptor output_;
  WrittenResults written_;
};

enum class ResultOrder { kOfCompletion, kOfInput };

// Brings the results of many requests into order: holds back those whose turn has not come.
class ResultQueue {
 public:
  explicit ResultQueue(ResultOrder order) : order_(order) {}

  // The next request of the input, which will have so many results. Returns its place.
  int64_t Expect(int64_t num_results);
  // A result: its line; "" where it need not be written.
  void Put(int64_t place, int64_t index, std::string line);
  // The lines whose turn has come.
  std::string Take();
  // All lines that are there, past those that will not come any more.
  std::string TakeRest();
  // Requests of which something is to come, and those behind them.
  int64_t num_held() const { return static_cast<int64_t>(requests_.size()); }

 private:
  struct Results {
    std::vector<std::optional<std::string>> lines;
    size_t num_taken = 0;
  };

  ResultOrder order_;
  int64_t num_expected_ = 0;
  std::string ready_;
  std::deque<Results> requests_;  // kOfInput: the last num_held()
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BATCH_OUTPUT_H_
