#include "model/llama_config.h"

#include <algorithm>
#include <numbers>

#include "base/check.h"
#include "base/fixed_math.h"
#include "model/llama_config_checks.h"

namespace kvick {
namespace {

// The frequency of one pair under llama3 scaling: kept where its wavelength fits the original
// context high_freq_factor times, divided by factor where it fits less than low_freq_factor times.
double Llama3Frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double num_waves = static_cast<double>(rope.original_max_positions) / wavelength;
  const double blend = std::clamp(
      (num_waves - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
      1.0);
  return (1.0 - blend) * frequency / rope.factor + blend * frequency;
}

double ScaledFrequency(const RopeConfig& rope, double frequency) {
  switch (rope.scaling) {
    case RopeConfig::Scaling::kNone:
      return frequency;
    case RopeConfig::Scaling::kLinear:
      return frequency / rope.factor;
    case RopeConfig::Scaling::kLlama3:
      return Llama3Frequency(rope, frequency);
  }
  return frequency;
}

}  // namespace

std::vector<double> RopeInverseFrequencies(const LlamaConfig& config) {
  const RopeConfig& rope = config.rope;
  const auto num_pairs = static_cast<size_t>(config.head_dim / 2);
  KVICK_CHECK(rope.freq_factors.empty() || rope.freq_factors.size() == num_pairs);
  std::vector<double> frequencies(num_pairs);
  for (size_t i = 0; i < num_pairs; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    frequencies[i] = ScaledFrequency(rope, FixedPow(rope.theta, -exponent));
    if (!rope.freq_factors.empty()) frequencies[i] /= rope.freq_factors[i];
  }
  return frequencies;
}

Status CheckHeads(const HeadFields& fields, LlamaConfig& config) {
  if (config.head_dim == 0) {
    if (config.hidden_size % config.num_heads != 0) {
      return Fail(ErrorCode::kCorrupt, "{}: expected a multiple of {} ({}), got {}",
                  fields.hidden_size, fields.num_heads, config.num_heads, config.hidden_size);
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  KVICK_RETURN_IF_ERROR(CheckRange(fields.head_dim, config.head_dim, kHeadDimRange));
  if (config.head_dim % 2 != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an even number, got {}", fields.head_dim,
                config.head_dim);
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a divisor of {} ({}), got {}",
                fields.num_kv_heads, fields.num_heads, config.num_heads, config.num_kv_heads);
  }
  return {};
}

}  // namespace kvick
