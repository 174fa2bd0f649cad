// Q4_0: 32 weights of 4 bits and one scale, 18 bytes.
//
//   f16 d;  u8 q[16]: code i is the low half of q[i], code 16 + i the high one
//   weight = d * (code - 8)

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kHalf = 16, kOffset = 8;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const std::byte* q = block + 2;
  out.scales[0] = LoadF16(block);
  out.minimums[0] = 0.0f;
  for (int i = 0; i < kHalf; ++i) {
    out.codes[i] = static_cast<int8_t>(LowNibble(q, i) - kOffset);
    out.codes[kHalf + i] = static_cast<int8_t>(HighNibble(q, i) - kOffset);
  }
}

void Pack(const float* values, std::byte* block) {
  const float d = StoreF16(LargestMagnitude(values, 2 * kHalf) / 7, block);
  const auto code = [&](int i) { return NearestCode(values[i], d, -8, 7) + kOffset; };
  for (int i = 0; i < kHalf; ++i) {
    block[2 + i] = static_cast<std::byte>(code(i) | code(kHalf + i) << 4);
  }
}

}  // namespace

constexpr WeightFormat kQ4_0Format{
    .type = WeightType::kQ4_0,
    .name = "q4_0",
    .gguf_name = "Q4_0",
    .gguf_type = 2,
    .block_elements = 32,
    .block_bytes = 18,
    .sub_block_elements = 32,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
