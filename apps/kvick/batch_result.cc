#include "batch_result.h"

#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "notes.h"

namespace kvick::cli {
namespace {

// Members in the order in which they are set: first whose result it is.
using OrderedJson = nlohmann::ordered_json;

std::string ToLine(const OrderedJson& object) {
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson ErrorJson(const Error& error) {
  return {{"code", ErrorCodeName(error.code)}, {"message", error.message}};
}

double Milliseconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1000; }

std::string NameOf(const RequestKey& key) {
  return key.has_id ? key.id.dump() : fmt::format("line {}", key.line);
}

std::string CompletionKey(const RequestKey& key, int64_t index) {
  return fmt::format("{} {}", index, NameOf(key));
}

std::string RefusalKey(const nlohmann::json& id, int64_t line) {
  return fmt::format("refused {} {}", line, id.dump());
}

}  // namespace

std::string CompletionLine(const RequestKey& key, int64_t num_prompt_tokens,
                           const GenerateResult& result, const nlohmann::json& text) {
  OrderedJson line = {{"id", key.id}};
  if (!key.has_id) line["line"] = key.line;
  line["index"] = result.sample_idx;
  if (result.error) {
    line["error"] = ErrorJson(*result.error);
    return ToLine(line);
  }
  line["text"] = text;
  line["tokens"] = result.tokens;
  line["finish_reason"] = FinishReasonName(result.finish_reason);
  line["context_is_full"] = result.context_is_full;
  if (result.nan_logits) line["warning"] = NanWarning(*result.nan_logits);
  line["prompt_tokens"] = num_prompt_tokens;
  line["reused_tokens"] = result.num_reused_tokens;
  line["preemptions"] = result.num_preemptions;
  line["timings"] = {{"first_token_ms", Milliseconds(result.first_token_us)},
                     {"finished_ms", Milliseconds(result.finished_us)}};
  return ToLine(line);
}

std::string RefusalLine(const BatchRequest& request) {
  KVICK_CHECK(request.error.has_value());
  return ToLine(
      {{"id", request.key.id}, {"line", request.key.line}, {"error", ErrorJson(*request.error)}});
}

Status WrittenResults::Add(std::string_view line) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json value, ParseJson(line, "the line"));
  const JsonMembers members(value);
  const bool is_error = members.Find("error") != nullptr;
  const bool is_result = value.is_object() && value.contains("id") &&
                         (is_error || members.Find("finish_reason") != nullptr);
  if (!is_result) return Fail(ErrorCode::kCorrupt, "expected a text or an error, got neither");
  RequestKey written = {value["id"], 0, members.Find("line") == nullptr};
  if (!written.has_id) {
    KVICK_ASSIGN_OR_RETURN(written.line, members.Int("line", {}));
  }
  std::string key;
  if (is_error && members.Find("index") == nullptr) {
    if (written.has_id)
      return Fail(ErrorCode::kCorrupt, "expected an index or a line, got neither");
    key = RefusalKey(written.id, written.line);
  } else {
    KVICK_ASSIGN_OR_RETURN(const int64_t index, members.Int("index", {}));
    key = CompletionKey(written, index);
  }
  outcomes_.emplace(std::move(key), is_error ? Outcome::kError : Outcome::kText);
  return {};
}

WrittenResults::Outcome WrittenResults::OfCompletion(const RequestKey& key, int64_t index) const {
  return Find(CompletionKey(key, index));
}

WrittenResults::Outcome WrittenResults::OfRefusal(const RequestKey& key) const {
  return Find(RefusalKey(key.id, key.line));
}

WrittenResults::Outcome WrittenResults::Find(const std::string& key) const {
  const auto found = outcomes_.find(key);
  return found == outcomes_.end() ? Outcome::kMissing : found->second;
}

}  // namespace kvick::cli
