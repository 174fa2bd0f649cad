// Q4_K: 256 weights of 4 bits in 8 sub-blocks of 32, 144 bytes.
//
//   f16 d, dmin;  u8 sub[12]: scales and minimums (six_bit_scales.h)
//   u8 q[128]: code 64 k + i is the low half of q[32 k + i], code 64 k + 32 + i the high one
//   weight = d * scale * code - dmin * minimum

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"
#include "quant/six_bit_scales.h"

namespace kvick {
namespace {

constexpr int kSubBlocks = 8, kSub = 32, kElements = kSubBlocks * kSub;
constexpr int kSubScales = 4, kCodes = 16, kBytes = 144;  // offsets

int ShiftOf(int i) { return i / 32 % 2 * 4; }
int PlaceOf(int i) { return kCodes + i / 64 * 32 + i % 32; }

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const float d = LoadF16(block), dmin = LoadF16(block + 2);
  for (int j = 0; j < kSubBlocks; ++j) {
    const ScaleAndMinimum sub = LoadSixBits(block + kSubScales, j);
    out.scales[j] = d * static_cast<float>(sub.scale);
    out.minimums[j] = -(dmin * static_cast<float>(sub.minimum));
  }
  for (int i = 0; i < kElements; ++i) {
    out.codes[i] = static_cast<int8_t>(Byte(block, PlaceOf(i)) >> ShiftOf(i) & 15);
  }
}

void Pack(const float* values, std::byte* block) {
  const SubScales sub = ChooseScalesAndMinimums(values, {kSubBlocks, kSub, 15, 63});
  std::memset(block, 0, kBytes);
  StoreF16(sub.d, block);
  StoreF16(sub.dmin, block + 2);
  for (int j = 0; j < kSubBlocks; ++j) {
    StoreSixBits({sub.scales[j], sub.minimums[j]}, j, block + kSubScales);
  }
  for (int i = 0; i < kElements; ++i) {
    const int code = sub.Code(values[i], i / kSub, 0, 15);
    block[PlaceOf(i)] |= static_cast<std::byte>(code << ShiftOf(i));
  }
}

}  // namespace

constexpr WeightFormat kQ4_KFormat{
    .type = WeightType::kQ4_K,
    .name = "q4_k",
    .gguf_name = "Q4_K",
    .gguf_type = 12,
    .block_elements = 256,
    .block_bytes = 144,
    .sub_block_elements = kSub,
    .has_minimums = true,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
