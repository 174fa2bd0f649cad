#ifndef KVICK_APPS_KVICK_BATCH_RESULT_H_
#define KVICK_APPS_KVICK_BATCH_RESULT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "batch_request.h"
#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick::cli {

// The lines that `kvick batch` writes, each with its newline.

// A completion, or with kFailed why there is none. `text` is null without a tokenizer.
std::string CompletionLine(const RequestKey& key, int64_t num_prompt_tokens,
                           const GenerateResult& result, const nlohmann::json& text);
// A request that was not run. REQUIRES: request.error.
std::string RefusalLine(const BatchRequest& request);

// The results that a file holds.
class WrittenResults {
 public:
  enum class Outcome { kMissing, kText, kError };

  // Takes note of a line. Errors: corrupt: it is none of the above.
  Status Add(std::string_view line);

  Outcome OfCompletion(const RequestKey& key, int64_t index) const;
  // By id and line: two refused lines may have the same id.
  Outcome OfRefusal(const RequestKey& key) const;
  bool is_empty() const { return outcomes_.empty(); }

 private:
  Outcome Find(const std::string& key) const;

  std::unordered_map<std::string, Outcome> outcomes_;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BATCH_RESULT_H_
