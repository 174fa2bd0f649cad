#ifndef KVICK_OPS_ROPE_H_
#define KVICK_OPS_ROPE_H_

#include <cstdint>
#include <span>

#include "base/exec.h"

namespace kvick {

// Which two elements of a head form a pair, for i in [0, R/2) of R rotated elements.
enum class RopePairs {
  kHalves,       ///< (i, i + R/2): Hugging Face
  kInterleaved,  ///< (2i, 2i + 1): GGUF's llama
};

// Computes the rotation of each position: magnitude times the cos and sin of
// positions[t] * inverse_frequencies[i].
//
// Shapes    inverse_frequencies [R/2];  positions [T];  cos, sin [T, R/2]
// Types     computed in f64 (FixedSinCos: the same bits on every machine), rounded once to f32
// Units     positions: tokens, 0-based;  inverse_frequencies: radians per token
// Cost      T * R/2 sines and cosines: once for all layers and heads of a step
struct RopeTableArgs {
  std::span<const double> inverse_frequencies;
  std::span<const int64_t> positions;
  double magnitude = 1.0;
  float* cos = nullptr;
  float* sin = nullptr;
};
void ComputeRopeTable(const RopeTableArgs& args);

struct RopeArgs {
  float* x = nullptr;          // [T, H, D]
  const float* cos = nullptr;  // [T, R/2]
  const float* sin = nullptr;  // [T, R/2]
  int64_t num_tokens = 0;      // T
  int64_t num_heads = 0;       // H
  int64_t head_dim = 0;        // D
  int64_t num_rotated = 0;     // R: the first elements of each head; the others are kept
  RopePairs pairs = RopePairs::kHalves;
};

// Rotates each pair (a, b) of each head by its token's angle, in place.
//
//   (a, b) -> (a * cos - b * sin, b * cos + a * sin)
//
// Shapes    x [T, H, D];  cos, sin [T, R/2];  T >= 0, H >= 1, R even and 2 to D
// Types     f32
// Cost      one pass over x;  allocates nothing
// Source    arXiv:2104.09864
void ApplyRope(const Exec& exec, const RopeArgs& args);

}  // namespace kvick

#endif  // KVICK_OPS_ROPE_H_
