// IQ4_NL: 32 weights of 4 bits, which index a table, and one scale, 18 bytes.
//
//   f16 d;  u8 q[16]: index i is the low half of q[i], index 16 + i the high one
//   weight = d * values[index]

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"
#include "quant/iq4_values.h"

namespace kvick {
namespace {

constexpr int kHalf = 16;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const std::byte* q = block + 2;
  out.scales[0] = LoadF16(block);
  out.minimums[0] = 0.0f;
  for (int i = 0; i < kHalf; ++i) {
    out.codes[i] = kIq4Values[static_cast<size_t>(LowNibble(q, i))];
    out.codes[kHalf + i] = kIq4Values[static_cast<size_t>(HighNibble(q, i))];
  }
}

void Pack(const float* values, std::byte* block) {
  const float d = StoreF16(LargestMagnitude(values, 2 * kHalf) / 113, block);
  for (int i = 0; i < kHalf; ++i) {
    block[2 + i] =
        static_cast<std::byte>(NearestIq4(values[i], d) | NearestIq4(values[kHalf + i], d) << 4);
  }
}

}  // namespace

constexpr WeightFormat kIQ4_NLFormat{
    .type = WeightType::kIQ4_NL,
    .name = "iq4_nl",
    .gguf_name = "IQ4_NL",
    .gguf_type = 20,
    .block_elements = 32,
    .block_bytes = 18,
    .sub_block_elements = 32,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
