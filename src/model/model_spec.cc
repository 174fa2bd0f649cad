#include "model/model_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/fixed_math.h"

namespace kvick {
namespace {

// The frequency of one pair under llama3 scaling: kept where its wavelength fits the original
// context high_freq_factor times, divided by factor where it fits less than low_freq_factor times.
double Llama3Frequency(const RopeSpec& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double num_waves = static_cast<double>(rope.original_max_positions) / wavelength;
  const double blend = std::clamp(
      (num_waves - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
      1.0);
  return (1.0 - blend) * frequency / rope.factor + blend * frequency;
}

// The pair, a fraction, that turns so often within the original context.
double PairOfRotations(const RopeSpec& rope, double num_rotations) {
  const double turns =
      static_cast<double>(rope.original_max_positions) / (num_rotations * 2.0 * std::numbers::pi);
  return static_cast<double>(rope.num_rotated) * FixedLog(turns) / (2.0 * FixedLog(rope.theta));
}

// Pairs that turn more than beta_fast times are kept, those that turn less than beta_slow times are
// divided by factor, with a ramp between.
double YarnFrequency(const RopeSpec& rope, size_t pair, double frequency) {
  double low = PairOfRotations(rope, rope.beta_fast);
  double high = PairOfRotations(rope, rope.beta_slow);
  if (rope.truncates_ramp) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.num_rotated - 1));
  const double width = high > low ? high - low : 0.001;
  const double ramp = std::clamp((static_cast<double>(pair) - low) / width, 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1.0 - ramp);
}

double ScaledFrequency(const RopeSpec& rope, size_t pair, double frequency) {
  switch (rope.scaling) {
    case RopeSpec::Scaling::kNone:
    case RopeSpec::Scaling::kLongRope:
      return frequency;
    case RopeSpec::Scaling::kLinear:
      return frequency / rope.factor;
    case RopeSpec::Scaling::kLlama3:
      return Llama3Frequency(rope, frequency);
    case RopeSpec::Scaling::kYarn:
      return YarnFrequency(rope, pair, frequency);
  }
  return frequency;
}

bool IsLong(const RopeSpec& rope, int64_t num_tokens) {
  return rope.scaling == RopeSpec::Scaling::kLongRope && num_tokens > rope.original_max_positions;
}

}  // namespace

std::vector<double> RopeInverseFrequencies(const RopeSpec& rope, int64_t num_tokens) {
  const auto num_pairs = static_cast<size_t>(rope.num_rotated / 2);
  const std::vector<double>& factors =
      IsLong(rope, num_tokens) ? rope.long_freq_factors : rope.freq_factors;
  KVICK_CHECK(factors.empty() || factors.size() == num_pairs);
  std::vector<double> frequencies(num_pairs);
  for (size_t i = 0; i < num_pairs; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(rope.num_rotated);
    frequencies[i] = ScaledFrequency(rope, i, FixedPow(rope.theta, -exponent));
    if (!factors.empty()) frequencies[i] /= factors[i];
  }
  return frequencies;
}

int64_t ModelSpec::RopeSwitchLength() const {
  for (const RopeSpec& rope : ropes) {
    if (rope.scaling == RopeSpec::Scaling::kLongRope) return rope.original_max_positions;
  }
  return 0;
}

std::vector<int64_t> ModelSpec::Windows() const {
  std::vector<int64_t> windows;
  for (const LayerSpec& layer : layers) windows.push_back(layer.window);
  const bool has_window = std::ranges::any_of(windows, [](int64_t window) { return window > 0; });
  return has_window ? windows : std::vector<int64_t>();
}

}  // namespace kvick
