// Q5_1: 32 weights of 5 bits, a scale and a minimum, 24 bytes.
//
//   f16 d, m;  u32 high: bit i is the highest bit of code i;  u8 q[16]: the lower four bits of code
//   i in the low half of q[i], those of code 16 + i in the high one
//   weight = d * code + m

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kHalf = 16;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const std::byte* q = block + 8;
  const uint32_t high = LoadU32(block + 4);
  const auto fifth = [high](int i) { return static_cast<int>(high >> i & 1) << 4; };
  out.scales[0] = LoadF16(block);
  out.minimums[0] = LoadF16(block + 2);
  for (int i = 0; i < kHalf; ++i) {
    out.codes[i] = static_cast<int8_t>(LowNibble(q, i) | fifth(i));
    out.codes[kHalf + i] = static_cast<int8_t>(HighNibble(q, i) | fifth(kHalf + i));
  }
}

void Pack(const float* values, std::byte* block) {
  const Extremes extremes = ExtremesOf(values, 2 * kHalf);
  const float d = StoreF16((extremes.most - extremes.least) / 31, block);
  const float m = StoreF16(extremes.least, block + 2);
  uint32_t high = 0;
  const auto low = [&](int i) {
    const int code = NearestCode(values[i] - m, d, 0, 31);
    high |= static_cast<uint32_t>(code >> 4) << i;
    return code & 15;
  };
  for (int i = 0; i < kHalf; ++i) {
    block[8 + i] = static_cast<std::byte>(low(i) | low(kHalf + i) << 4);
  }
  StoreU32(high, block + 4);
}

}  // namespace

constexpr WeightFormat kQ5_1Format{
    .type = WeightType::kQ5_1,
    .name = "q5_1",
    .gguf_name = "Q5_1",
    .gguf_type = 7,
    .block_elements = 32,
    .block_bytes = 24,
    .sub_block_elements = 32,
    .has_minimums = true,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
