#include "ops/rope.h"

#include "base/check.h"
#include "base/fixed_math.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"  // must follow foreach_target.h

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// One head of one token: x [2 * half], cos and sin [half].
struct Rotation {
  const float* cos;
  const float* sin;
  int64_t half;
};

HWY_INLINE void RotatePair(float& a, float& b, float cos, float sin) {
  const float a_old = a, b_old = b;
  a = a_old * cos - b_old * sin;
  b = b_old * cos + a_old * sin;
}

// Products are rounded before they are added, so that the tail has the bits of the vectors.
template <class V>
HWY_INLINE void RotateVectors(V& a, V& b, V cos, V sin) {
  const V a_old = a, b_old = b;
  a = hn::Sub(hn::Mul(a_old, cos), hn::Mul(b_old, sin));
  b = hn::Add(hn::Mul(b_old, cos), hn::Mul(a_old, sin));
}

void RotateHalves(const Rotation& rotation, float* x) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* upper = x + rotation.half;
  int64_t i = 0;
  for (; i + lanes <= rotation.half; i += lanes) {
    auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, upper + i);
    RotateVectors(a, b, hn::LoadU(d, rotation.cos + i), hn::LoadU(d, rotation.sin + i));
    hn::StoreU(a, d, x + i);
    hn::StoreU(b, d, upper + i);
  }
  for (; i < rotation.half; ++i) RotatePair(x[i], upper[i], rotation.cos[i], rotation.sin[i]);
}

void RotateInterleaved(const Rotation& rotation, float* x) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= rotation.half; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    RotateVectors(a, b, hn::LoadU(d, rotation.cos + i), hn::LoadU(d, rotation.sin + i));
    hn::StoreInterleaved2(a, b, d, x + 2 * i);
  }
  for (; i < rotation.half; ++i)
    RotatePair(x[2 * i], x[2 * i + 1], rotation.cos[i], rotation.sin[i]);
}

void RotateToken(const RopeArgs& args, int64_t token) {
  const int64_t half = args.num_rotated / 2;
  const Rotation rotation{args.cos + token * half, args.sin + token * half, half};
  float* x = args.x + token * args.num_heads * args.head_dim;
  for (int64_t head = 0; head < args.num_heads; ++head, x += args.head_dim) {
    if (args.pairs == RopePairs::kHalves) {
      RotateHalves(rotation, x);
    } else {
      RotateInterleaved(rotation, x);
    }
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void ComputeRopeTable(const RopeTableArgs& args) {
  float* cos = args.cos;
  float* sin = args.sin;
  for (int64_t position : args.positions) {
    for (double frequency : args.inverse_frequencies) {
      const SinAndCos rotation = FixedSinCos(static_cast<double>(position) * frequency);
      *cos++ = static_cast<float>(args.magnitude * rotation.cos);
      *sin++ = static_cast<float>(args.magnitude * rotation.sin);
    }
  }
}

void ApplyRope(const Exec& exec, const RopeArgs& args) {
  KVICK_CHECK(args.num_tokens >= 0 && args.num_heads >= 1);
  KVICK_CHECK(args.num_rotated >= 2 && args.num_rotated % 2 == 0);
  KVICK_CHECK(args.num_rotated <= args.head_dim);
  const auto rotate_token = KVICK_FOR_ISA(exec.isa, RotateToken);
  const int64_t token_elements = args.num_heads * args.head_dim;
  ParallelRows(exec, args.num_tokens, token_elements, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) rotate_token(args, token);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
