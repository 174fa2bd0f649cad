#include "prove/serving_trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <string>

#include "base/check.h"
#include "base/fixed_math.h"

namespace kvick {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 31;

// In (0, 1], from the bits of the generator: distributions differ between standard libraries.
double Uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
}

double Normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * FixedLog(Uniform(random)));
  return radius * FixedSinCos(2 * std::numbers::pi * Uniform(random)).cos;
}

int64_t Share(double share, int64_t num_tokens) {
  return static_cast<int64_t>(std::llround(share * static_cast<double>(num_tokens)));
}

Status CheckRange(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return Fail(ErrorCode::kInvalidArgument, "trace: {}: expected {} to {}, got {}", name, low, high,
              value);
}

Status CheckOptions(const TraceOptions& options) {
  KVICK_RETURN_IF_ERROR(
      CheckRange("num_requests", static_cast<double>(options.num_requests), 1, 1e7));
  KVICK_RETURN_IF_ERROR(CheckRange("mean_tokens", options.mean_tokens, 2, 1e9));
  KVICK_RETURN_IF_ERROR(CheckRange("length_deviation", options.length_deviation, 0, 4));
  KVICK_RETURN_IF_ERROR(CheckRange("output_share", options.output_share, 0, 1));
  KVICK_RETURN_IF_ERROR(CheckRange("shared_prefix", options.shared_prefix, 0, 1));
  KVICK_RETURN_IF_ERROR(
      CheckRange("num_prefixes", static_cast<double>(options.num_prefixes), 1, 1e7));
  KVICK_RETURN_IF_ERROR(CheckRange("requests_per_second", options.requests_per_second, 1e-3, 1e9));
  return CheckRange("max_tokens", static_cast<double>(options.max_tokens), 2, kMaxTokens);
}

Result<int64_t> Number(const nlohmann::json& line, const char* key, int64_t low,
                       std::optional<int64_t> fallback = std::nullopt) {
  const auto found = line.find(key);
  if (found == line.end() && fallback) return *fallback;
  if (found == line.end() || !found->is_number()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected a number, got {}", key,
                found == line.end() ? "nothing" : found->dump());
  }
  const double value = found->get<double>();
  if (!(value >= static_cast<double>(low) && value <= static_cast<double>(kMaxTokens))) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected {} to {}, got {}", key, low, kMaxTokens,
                found->dump());
  }
  return std::llround(value);
}

Result<TracedRequest> ParseLine(std::string_view text, const TraceOptions& options) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) {
    return Fail(ErrorCode::kInvalidArgument, "expected a JSON object, got {} bytes of other text",
                text.size());
  }
  TracedRequest request;
  const auto arrival = line.find("arrival_ms");
  if (arrival == line.end() || !arrival->is_number() || !(arrival->get<double>() >= 0) ||
      arrival->get<double>() > 1e12) {
    return Fail(ErrorCode::kInvalidArgument, "arrival_ms: expected 0 to 1e12, got {}",
                arrival == line.end() ? "nothing" : arrival->dump());
  }
  request.arrival_us = std::llround(arrival->get<double>() * 1000);
  KVICK_ASSIGN_OR_RETURN(request.prompt_tokens, Number(line, "prompt_tokens", 1));
  KVICK_ASSIGN_OR_RETURN(request.output_tokens, Number(line, "output_tokens", 1));
  KVICK_ASSIGN_OR_RETURN(request.prefix_id, Number(line, "prefix_id", -1, -1));
  if (request.prefix_id < 0 && line.contains("prefix_tokens")) {
    return Fail(ErrorCode::kInvalidArgument,
                "prefix_id: expected an id, because prefix_tokens is given, got none");
  }
  if (request.prompt_tokens + request.output_tokens > options.max_tokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "prompt_tokens + output_tokens: expected at most {}, got {}", options.max_tokens,
                request.prompt_tokens + request.output_tokens);
  }
  const int64_t shared =
      request.prefix_id < 0 ? 0 : Share(options.shared_prefix, request.prompt_tokens);
  KVICK_ASSIGN_OR_RETURN(request.prefix_tokens, Number(line, "prefix_tokens", 0, shared));
  request.prefix_tokens = std::min(request.prefix_tokens, request.prompt_tokens);
  return request;
}

}  // namespace

Result<std::vector<TracedRequest>> MakeTrace(const TraceOptions& options) {
  KVICK_RETURN_IF_ERROR(CheckOptions(options));
  std::mt19937_64 random(options.seed);
  const double deviation = options.length_deviation;
  const double mean_of_log = FixedLog(options.mean_tokens) - deviation * deviation / 2;
  std::vector<TracedRequest> trace;
  double now_us = 0;
  for (int64_t i = 0; i < options.num_requests; ++i) {
    now_us -= FixedLog(Uniform(random)) * 1e6 / options.requests_per_second;
    const double length = FixedExp(mean_of_log + deviation * Normal(random));
    const int64_t num_tokens =
        static_cast<int64_t>(std::clamp(length, 2.0, static_cast<double>(options.max_tokens)));
    TracedRequest request;
    request.arrival_us = static_cast<int64_t>(now_us);
    request.output_tokens =
        std::clamp<int64_t>(Share(options.output_share, num_tokens), 1, num_tokens - 1);
    request.prompt_tokens = num_tokens - request.output_tokens;
    request.prefix_id =
        static_cast<int64_t>(random() % static_cast<uint64_t>(options.num_prefixes));
    request.prefix_tokens = Share(options.shared_prefix, request.prompt_tokens);
    trace.push_back(request);
  }
  return trace;
}

Result<std::vector<TracedRequest>> ParseTrace(std::string_view lines, const TraceOptions& options) {
  KVICK_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<TracedRequest> trace;
  for (int64_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto request = ParseLine(line, options);
    if (!request) {
      return Fail(request.error().code, "trace: line {}: {}", number, request.error().message);
    }
    trace.push_back(*request);
  }
  if (trace.empty()) return Fail(ErrorCode::kInvalidArgument, "trace: it holds no request");
  std::ranges::stable_sort(trace, {}, &TracedRequest::arrival_us);
  return trace;
}

GenerateRequest RequestOf(const TracedRequest& traced, int64_t request_idx, int64_t vocab_size) {
  GenerateRequest request;
  const auto append = [&](uint64_t seed, int64_t num_tokens) {
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < num_tokens; ++i) {
      request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
    }
  };
  // Even seeds are for shared prefixes, odd seeds for the rest of a prompt.
  append(2 * static_cast<uint64_t>(traced.prefix_id), traced.prefix_tokens);
  append(2 * static_cast<uint64_t>(request_idx) + 1, traced.prompt_tokens - traced.prefix_tokens);
  request.max_new_tokens = traced.output_tokens;
  request.ignore_eos = true;
  return request;
}

}  // namespace kvick
