// Q4_1: 32 weights of 4 bits, a scale and a minimum, 20 bytes.
//
//   f16 d, m;  u8 q[16]: code i is the low half of q[i], code 16 + i the high one
//   weight = d * code + m

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kHalf = 16;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const std::byte* q = block + 4;
  out.scales[0] = LoadF16(block);
  out.minimums[0] = LoadF16(block + 2);
  for (int i = 0; i < kHalf; ++i) {
    out.codes[i] = static_cast<int8_t>(LowNibble(q, i));
    out.codes[kHalf + i] = static_cast<int8_t>(HighNibble(q, i));
  }
}

void Pack(const float* values, std::byte* block) {
  const Extremes extremes = ExtremesOf(values, 2 * kHalf);
  const float d = StoreF16((extremes.most - extremes.least) / 15, block);
  const float m = StoreF16(extremes.least, block + 2);
  const auto code = [&](int i) { return NearestCode(values[i] - m, d, 0, 15); };
  for (int i = 0; i < kHalf; ++i) {
    block[4 + i] = static_cast<std::byte>(code(i) | code(kHalf + i) << 4);
  }
}

}  // namespace

constexpr WeightFormat kQ4_1Format{
    .type = WeightType::kQ4_1,
    .name = "q4_1",
    .gguf_name = "Q4_1",
    .gguf_type = 3,
    .block_elements = 32,
    .block_bytes = 20,
    .sub_block_elements = 32,
    .has_minimums = true,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
