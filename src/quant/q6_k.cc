// Q6_K: 256 weights of 6 bits in 16 sub-blocks of 16, 210 bytes.
//
//   u8 low[128]: the low half of low[64 h + i] is the lower four bits of code 128 h + i, the high
//   half those of code 128 h + 64 + i, for i in [0, 64)
//
//   u8 high[64]: bits 2 k and 2 k + 1 of high[32 h + i] are the upper two of code 128 h + 32 k + i
//
//   i8 scale[16];  f16 d
//
//   weight = d * scale * (code - 32)

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kSubBlocks = 16, kSub = 16, kElements = kSubBlocks * kSub;
constexpr int kHigh = 128, kSubScales = 192, kScale = 208, kBytes = 210;  // offsets
constexpr int kOffset = 32;

int LowPlaceOf(int i) { return i / 128 * 64 + i % 64; }
int LowShiftOf(int i) { return i / 64 % 2 * 4; }
int HighPlaceOf(int i) { return kHigh + i / 128 * 32 + i % 32; }
int HighShiftOf(int i) { return i / 32 % 4 * 2; }

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const float d = LoadF16(block + kScale);
  for (int j = 0; j < kSubBlocks; ++j) {
    out.scales[j] = d * static_cast<float>(static_cast<int8_t>(Byte(block, kSubScales + j)));
    out.minimums[j] = 0.0f;
  }
  for (int i = 0; i < kElements; ++i) {
    const int low = Byte(block, LowPlaceOf(i)) >> LowShiftOf(i) & 15;
    const int high = Byte(block, HighPlaceOf(i)) >> HighShiftOf(i) & 3;
    out.codes[i] = static_cast<int8_t>((low | high << 4) - kOffset);
  }
}

void Pack(const float* values, std::byte* block) {
  const SubScales sub = ChooseScales(values, {kSubBlocks, kSub, 31, 127});
  std::memset(block, 0, kBytes);
  StoreF16(sub.d, block + kScale);
  for (int j = 0; j < kSubBlocks; ++j) {
    block[kSubScales + j] = static_cast<std::byte>(sub.scales[j]);
  }
  for (int i = 0; i < kElements; ++i) {
    const int code = sub.Code(values[i], i / kSub, -32, 31) + kOffset;
    block[LowPlaceOf(i)] |= static_cast<std::byte>((code & 15) << LowShiftOf(i));
    block[HighPlaceOf(i)] |= static_cast<std::byte>((code >> 4) << HighShiftOf(i));
  }
}

}  // namespace

constexpr WeightFormat kQ6_KFormat{
    .type = WeightType::kQ6_K,
    .name = "q6_k",
    .gguf_name = "Q6_K",
    .gguf_type = 14,
    .block_elements = 256,
    .block_bytes = 210,
    .sub_block_elements = kSub,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
