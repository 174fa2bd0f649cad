#include "batch_request.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"

namespace kvick::cli {
namespace {

using nlohmann::json;

// A name is kept for as long as the batch runs.
constexpr size_t kMaxNameBytes = 256;
// Each is looked for after each token.
constexpr size_t kMaxStops = 64;
constexpr int64_t kMaxSamples = 1 << 16;
constexpr int64_t kMaxSeed = std::numeric_limits<int64_t>::max() - 1;  // as of kvick generate

constexpr std::string_view kMembers[] = {"id",         "ignore_eos", "logit_bias",
                                         "max_tokens", "min_p",      "n",
                                         "namespace",  "prompt",     "repetition_penalty",
                                         "seed",       "stop",       "temperature",
                                         "tokens",     "top_k",      "top_p"};
static_assert(std::ranges::is_sorted(kMembers));

tl::unexpected<Error> Wrong(std::string_view member, const json& value, std::string_view wanted) {
  return Fail(ErrorCode::kInvalidArgument, "{} is {}, {} is wanted", member, JsonText(value),
              wanted);
}

Status CheckMembers(const json& line) {
  for (const auto& [name, value] : line.items()) {
    if (!std::ranges::binary_search(kMembers, name)) {
      return Fail(ErrorCode::kInvalidArgument,
                  "no member is called {}, `kvick batch --help` lists them", Quoted(name));
    }
  }
  return {};
}

Result<std::string> Name(const json& value, std::string_view member) {
  if (!value.is_string()) return Wrong(member, value, "a string");
  auto name = value.get<std::string>();
  if (name.size() <= kMaxNameBytes) return name;
  return Fail(ErrorCode::kInvalidArgument, "{} is {} bytes long, at most {} are possible", member,
              name.size(), kMaxNameBytes);
}

Result<json> Id(const json& line, int64_t line_number) {
  const json* id = JsonMembers(line).Find("id");
  if (id == nullptr) return json(line_number);
  if (id->is_number_integer()) return *id;
  if (!id->is_string()) return Wrong("id", *id, "a string or an integer");
  return Name(*id, "id");
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

Status ReadPrompt(const JsonMembers& members, BatchRequest& out) {
  KVICK_ASSIGN_OR_RETURN(const json* tokens, members.ArrayOrNull("tokens"));
  if ((members.Find("prompt") == nullptr) == (tokens == nullptr)) {
    return Fail(ErrorCode::kInvalidArgument, "{}, one of them is wanted",
                tokens == nullptr ? "neither prompt nor tokens" : "prompt and tokens");
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
    LogitBias& bias = biases.emplace_back();
    const char* const end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, bias.token);
    if (error != std::errc() || stop != end) {
      return Fail(ErrorCode::kInvalidArgument, "logit_bias: {} is no token id", Quoted(key));
    }
    if (!value.is_number()) return Wrong("a logit_bias", value, "a number");
    KVICK_RETURN_IF_ERROR(
        CheckRange("a logit_bias", value.get<double>(), {-kMaxLogitBias, kMaxLogitBias}));
    bias.bias = value.get<float>();
  }
  return biases;
}

// What they may be is the engine's to say; here it is only that the numbers can be held.
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
  KVICK_ASSIGN_OR_RETURN(sampling.top_k, members.IntOr("top_k", {}, sampling.top_k));
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
    return Wrong("stop", *stop, "a string or an array of them");
  }
  if (stop->size() <= kMaxStops) return stop->get<std::vector<std::string>>();
  return Fail(ErrorCode::kInvalidArgument, "stop holds {} texts, at most {} are possible",
              stop->size(), kMaxStops);
}

Status ReadMembers(const json& line, BatchRequest& out) {
  if (!line.is_object()) return Wrong("the line", line, "an object");
  KVICK_ASSIGN_OR_RETURN(out.id, Id(line, out.line));
  KVICK_RETURN_IF_ERROR(CheckMembers(line));
  const JsonMembers members(line);
  GenerateRequest& request = out.request;
  KVICK_RETURN_IF_ERROR(ReadPrompt(members, out));
  KVICK_RETURN_IF_ERROR(ReadSampling(members, request.sampling));
  KVICK_ASSIGN_OR_RETURN(request.max_new_tokens,
                         members.IntOr("max_tokens", {-1, kMaxTokens}, request.max_new_tokens));
  if (request.max_new_tokens < 0) request.max_new_tokens = kMaxTokens;
  KVICK_ASSIGN_OR_RETURN(request.num_samples, members.IntOr("n", {1, kMaxSamples}, 1));
  KVICK_ASSIGN_OR_RETURN(request.stop, Stops(members));
  KVICK_ASSIGN_OR_RETURN(request.ignore_eos, members.BoolOr("ignore_eos", request.ignore_eos));
  if (const json* name = members.Find("namespace")) {
    KVICK_ASSIGN_OR_RETURN(request.cache_salt, Name(*name, "namespace"));
  }
  return {};
}

Status ReadLine(const Line& line, BatchRequest& out) {
  if (line.is_too_long) {
    return Fail(ErrorCode::kInvalidArgument, "a line of more than {} bytes",
                LineReader::kMaxLineBytes);
  }
  KVICK_ASSIGN_OR_RETURN(const json value, ParseJson(line.text, "the line"));
  return ReadMembers(value, out);
}

}  // namespace

BatchRequest ParseBatchRequest(const Line& line) {
  BatchRequest out;
  out.line = line.number;
  const Status status = ReadLine(line, out);
  if (!status) {
    out.error = status.error();
    // For readers of files that is what it is; here it is a request.
    if (out.error->code == ErrorCode::kCorrupt) out.error->code = ErrorCode::kInvalidArgument;
  }
  return out;
}

Status EncodePrompt(const Model& model, BatchRequest& request) {
  if (!request.prompt_text) return {};
  KVICK_ASSIGN_OR_RETURN(request.request.prompt, model.Encode(*request.prompt_text));
  request.prompt_text.reset();
  return {};
}

}  // namespace kvick::cli
