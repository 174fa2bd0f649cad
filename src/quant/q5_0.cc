// Q5_0: 32 weights of 5 bits and one scale, 22 bytes.
//
//   f16 d;  u32 high: bit i is the highest bit of code i;  u8 q[16]: the lower four bits of code i
//   in the low half of q[i], those of code 16 + i in the high one
//   weight = d * (code - 16)

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kHalf = 16, kOffset = 16;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const std::byte* q = block + 6;
  const uint32_t high = LoadU32(block + 2);
  const auto fifth = [high](int i) { return static_cast<int>(high >> i & 1) << 4; };
  out.scales[0] = LoadF16(block);
  out.minimums[0] = 0.0f;
  for (int i = 0; i < kHalf; ++i) {
    out.codes[i] = static_cast<int8_t>((LowNibble(q, i) | fifth(i)) - kOffset);
    out.codes[kHalf + i] = static_cast<int8_t>((HighNibble(q, i) | fifth(kHalf + i)) - kOffset);
  }
}

void Pack(const float* values, std::byte* block) {
  const float d = StoreF16(LargestMagnitude(values, 2 * kHalf) / 15, block);
  uint32_t high = 0;
  const auto low = [&](int i) {
    const int code = NearestCode(values[i], d, -16, 15) + kOffset;
    high |= static_cast<uint32_t>(code >> 4) << i;
    return code & 15;
  };
  for (int i = 0; i < kHalf; ++i) {
    block[6 + i] = static_cast<std::byte>(low(i) | low(kHalf + i) << 4);
  }
  StoreU32(high, block + 2);
}

}  // namespace

constexpr WeightFormat kQ5_0Format{
    .type = WeightType::kQ5_0,
    .name = "q5_0",
    .gguf_name = "Q5_0",
    .gguf_type = 6,
    .block_elements = 32,
    .block_bytes = 22,
    .sub_block_elements = 32,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
