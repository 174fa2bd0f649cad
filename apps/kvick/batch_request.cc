#include "batch_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"
#include "options.h"

namespace kvick::cli {
namespace {

using nlohmann::json;

constexpr size_t kMaxNameBytes = 256;  // a name is kept for as long as the batch runs
constexpr size_t kMaxStops = 64;       // each is looked for after each token
constexpr int64_t kMaxSamples = 1 << 16;
constexpr int64_t kMaxSeed = std::numeric_limits<int64_t>::max() - 1;  // as of kvick generate

constexpr std::string_view kMembers[] = {"cache_salt",
                                         "id",
                                         "ignore_eos",
                                         "logit_bias",
                                         "max_completion_tokens",
                                         "max_tokens",
                                         "min_p",
                                         "n",
                                         "parse_special",
                                         "prompt",
                                         "repetition_penalty",
                                         "seed",
                                         "stop",
                                         "temperature",
                                         "tokens",
                                         "top_k",
                                         "top_p"};
static_assert(std::ranges::is_sorted(kMembers));

template <class... Args>
tl::unexpected<Error> Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

tl::unexpected<Error> Wrong(std::string_view member, std::string_view expected, const json& got) {
  return Invalid("{}: expected {}, got {}", member, expected, JsonText(got));
}

Status CheckMembers(const json& line) {
  for (const auto& [name, value] : line.items()) {
    if (value.is_null() || std::ranges::binary_search(kMembers, name)) continue;
    if (name == "namespace") return Invalid("namespace: expected cache_salt, its new name");
    return Invalid("{}: expected a member that `kvick batch --help` lists", Quoted(name));
  }
  return {};
}

Result<std::string> Name(const json& value, std::string_view member) {
  if (!value.is_string()) return Wrong(member, "a string", value);
  auto name = value.get<std::string>();
  if (name.size() <= kMaxNameBytes) return name;
  return Invalid("{}: expected at most {} bytes, got {}", member, kMaxNameBytes, name.size());
}

Status ReadId(const JsonMembers& members, RequestKey& key) {
  const json* id = members.Find("id");
  if (id == nullptr) return {};
  if (!id->is_number_integer()) {
    if (!id->is_string()) return Wrong("id", "a string or an integer", *id);
    KVICK_RETURN_IF_ERROR(Name(*id, "id"));
  }
  key.id = *id;
  key.has_id = true;
  return {};
}

Result<std::vector<int32_t>> Tokens(const json& list) {
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const json& token : list) {
    KVICK_ASSIGN_OR_RETURN(const int64_t id,
                           JsonInt(token, "a token", {0, std::numeric_limits<int32_t>::max()}));
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

Status ReadPromptOrTokens(const JsonMembers& members, BatchRequest& out) {
  KVICK_ASSIGN_OR_RETURN(const json* tokens, members.ArrayOrNull("tokens"));
  if ((members.Find("prompt") == nullptr) == (tokens == nullptr)) {
    return Invalid("expected one of prompt and tokens, got {}",
                   tokens == nullptr ? "neither" : "both");
  }
  if (tokens == nullptr) {
    KVICK_ASSIGN_OR_RETURN(out.prompt_text, members.String("prompt"));
  } else {
    KVICK_ASSIGN_OR_RETURN(out.request.prompt, Tokens(*tokens));
  }
  return {};
}

Result<std::vector<LogitBias>> Biases(const json& object) {
  std::vector<LogitBias> biases;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    LogitBias& bias = biases.emplace_back();
    const char* const end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, bias.token);
    if (error != std::errc() || stop != end) {
      return Invalid("logit_bias: expected a token id, got {}", Quoted(key));
    }
    const bool is_number = value.is_number() && std::abs(value.get<double>()) <= kMaxLogitBias;
    if (!is_number) return Wrong("logit_bias", "numbers from -1e30 to 1e30", value);
    bias.bias = value.get<float>();
  }
  return biases;
}

// The engine checks the ranges; here the numbers must only be numbers.
Status ReadSampling(const JsonMembers& members, SamplingOptions& sampling) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const std::pair<std::string_view, double*> reals[] = {
      {"temperature", &sampling.temperature},
      {"top_p", &sampling.top_p},
      {"min_p", &sampling.min_p},
      {"repetition_penalty", &sampling.repetition_penalty}};
  for (const auto& [name, value] : reals) {
    KVICK_ASSIGN_OR_RETURN(*value, members.FloatOr(name, {-kMost, kMost}, *value));
  }
  KVICK_ASSIGN_OR_RETURN(sampling.top_k,
                         members.IntOr("top_k", {-1, IntRange().max}, sampling.top_k));
  KVICK_ASSIGN_OR_RETURN(const int64_t seed, members.IntOr("seed", {0, kMaxSeed}, 0));
  sampling.seed = static_cast<uint64_t>(seed);
  if (members.Find("logit_bias") == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const json* biases, members.Object("logit_bias"));
  KVICK_ASSIGN_OR_RETURN(sampling.logit_bias, Biases(*biases));
  return {};
}

Result<std::vector<std::string>> Stops(const JsonMembers& members) {
  const json* stop = members.Find("stop");
  if (stop == nullptr) return std::vector<std::string>();
  const auto is_string = [](const json& value) { return value.is_string(); };
  if (is_string(*stop)) return std::vector{stop->get<std::string>()};
  if (!stop->is_array() || !std::ranges::all_of(*stop, is_string)) {
    return Wrong("stop", "a string or an array of strings", *stop);
  }
  if (stop->size() <= kMaxStops) return stop->get<std::vector<std::string>>();
  return Invalid("stop: expected at most {} strings, got {}", kMaxStops, stop->size());
}

Result<int64_t> MaxTokens(const JsonMembers& members, int64_t fallback) {
  constexpr const char* kNames[] = {"max_tokens", "max_completion_tokens"};
  std::optional<int64_t> max_tokens;
  for (const char* name : kNames) {
    if (members.Find(name) == nullptr) continue;
    KVICK_ASSIGN_OR_RETURN(const int64_t value, members.Int(name, {-1, kMaxTokens}));
    if (max_tokens && *max_tokens != value) {
      return Invalid("max_tokens and max_completion_tokens: expected one number, got {} and {}",
                     *max_tokens, value);
    }
    max_tokens = value;
  }
  if (max_tokens == -1) return kMaxTokens;
  return max_tokens.value_or(fallback);
}

Status ReadMembers(const json& line, BatchRequest& out) {
  if (!line.is_object()) return Wrong("the line", "an object", line);
  const JsonMembers members(line);
  KVICK_RETURN_IF_ERROR(ReadId(members, out.key));
  KVICK_RETURN_IF_ERROR(CheckMembers(line));
  GenerateRequest& request = out.request;
  KVICK_RETURN_IF_ERROR(ReadPromptOrTokens(members, out));
  KVICK_ASSIGN_OR_RETURN(out.text_options.parse_special, members.BoolOr("parse_special", true));
  KVICK_RETURN_IF_ERROR(ReadSampling(members, request.sampling));
  KVICK_ASSIGN_OR_RETURN(request.max_new_tokens, MaxTokens(members, request.max_new_tokens));
  KVICK_ASSIGN_OR_RETURN(request.num_samples, members.IntOr("n", {1, kMaxSamples}, 1));
  KVICK_ASSIGN_OR_RETURN(request.stop, Stops(members));
  KVICK_ASSIGN_OR_RETURN(request.ignore_eos, members.BoolOr("ignore_eos", request.ignore_eos));
  if (const json* salt = members.Find("cache_salt")) {
    KVICK_ASSIGN_OR_RETURN(request.cache_salt, Name(*salt, "cache_salt"));
  }
  return {};
}

Status ReadLine(const Line& line, BatchRequest& out) {
  if (line.is_too_long) {
    return Invalid("the line: expected at most {} bytes, got more", LineReader::kMaxLineBytes);
  }
  KVICK_ASSIGN_OR_RETURN(const json value, ParseJson(line.text, "the line"));
  return ReadMembers(value, out);
}

}  // namespace

BatchRequest ParseBatchRequest(const Line& line) {
  BatchRequest out;
  out.key = {.id = line.number, .line = line.number};
  const Status status = ReadLine(line, out);
  if (!status) {
    out.error = status.error();
    // What is a damaged file to the readers of formats is a wrong request here.
    if (out.error->code == ErrorCode::kCorrupt) out.error->code = ErrorCode::kInvalidArgument;
  }
  return out;
}

Status EncodePrompt(const Model& model, BatchRequest& request) {
  if (!request.prompt_text) return {};
  KVICK_ASSIGN_OR_RETURN(request.request.prompt,
                         model.Encode(*request.prompt_text, request.text_options));
  request.prompt_text.reset();
  return {};
}

}  // namespace kvick::cli
