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
  kNew,        ///< refuses a file that holds something
  kOverwrite,  ///< empties the file
  kResume,     ///< after the results that are there; a last line torn by a crash is cut off
};

// The file that results are appended to, line by whole line.
class ResultFile {
 public:
  // "-" is stdout. `input_fd` must be another file.
  // Errors: io; invalid_argument: the input's file, or with kNew one that is not empty; corrupt:
  // with kResume one that holds no results.
  static Result<ResultFile> Open(const std::string& path, OutputStart start, int input_fd);

  // Errors: io; an incomplete line is removed again if the output is a file.
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
  // With kOfInput: expected results that were not taken.
  int64_t num_held() const { return num_held_; }

 private:
  struct Results {
    std::vector<std::optional<std::string>> lines;
    size_t num_taken = 0;
  };

  ResultOrder order_;
  int64_t num_expected_ = 0;  // requests
  int64_t num_held_ = 0;
  std::string ready_;
  std::deque<Results> requests_;  // kOfInput: those not taken
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BATCH_OUTPUT_H_
