// Q3_K: 256 weights of 3 bits in 16 sub-blocks of 16, 110 bytes.
//
//   u8 high[32]: bit k of high[i] is the highest bit of code 32 k + i
//   u8 q[64]: q[32 h + i] holds, two bits each, lowest first, the lower bits of codes 128 h + i,
//   128 h + 32 + i, 128 h + 64 + i and 128 h + 96 + i
//   u8 sub[12]: scales of 6 bits: their lower four bits are the halves of sub[0..7], of scale j the
//   low half of sub[j], of scale 8 + j the high one; the upper two bits of scale 4 k + i are bits
//   2 k and 2 k + 1 of sub[8 + i]
//   f16 d
//   weight = d * (scale - 32) * (code - 4)

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kSubBlocks = 16, kSub = 16, kElements = kSubBlocks * kSub;
constexpr int kCodes = 32, kSubScales = 96, kScale = 108, kBytes = 110;  // offsets
constexpr int kScaleOffset = 32, kCodeOffset = 4;

int SubScale(const std::byte* sub, int j) {
  const int low = j < 8 ? LowNibble(sub, j) : HighNibble(sub, j - 8);
  const int high = Byte(sub, 8 + j % 4) >> (j / 4 * 2) & 3;
  return low | high << 4;
}

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const float d = LoadF16(block + kScale);
  for (int j = 0; j < kSubBlocks; ++j) {
    out.scales[j] = d * static_cast<float>(SubScale(block + kSubScales, j) - kScaleOffset);
    out.minimums[j] = 0.0f;
  }
  for (int i = 0; i < kElements; ++i) {
    const int low = Byte(block, kCodes + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
    const int high = Byte(block, i % 32) >> (i / 32) & 1;
    out.codes[i] = static_cast<int8_t>((low | high << 2) - kCodeOffset);
  }
}

void Pack(const float* values, std::byte* block) {
  const SubScales sub = ChooseScales(values, {kSubBlocks, kSub, 3, 31});
  std::memset(block, 0, kBytes);
  StoreF16(sub.d, block + kScale);
  for (int j = 0; j < kSubBlocks; ++j) {
    const int scale = sub.scales[j] + kScaleOffset;
    block[kSubScales + j % 8] |= static_cast<std::byte>((scale & 15) << (j / 8 * 4));
    block[kSubScales + 8 + j % 4] |= static_cast<std::byte>((scale >> 4) << (j / 4 * 2));
  }
  for (int i = 0; i < kElements; ++i) {
    const int code = sub.Code(values[i], i / kSub, -4, 3) + kCodeOffset;
    block[kCodes + i / 128 * 32 + i % 32] |= static_cast<std::byte>((code & 3) << (i / 32 % 4 * 2));
    block[i % 32] |= static_cast<std::byte>((code >> 2) << (i / 32));
  }
}

}  // namespace

constexpr WeightFormat kQ3_KFormat{
    .type = WeightType::kQ3_K,
    .name = "q3_k",
    .gguf_name = "Q3_K",
    .gguf_type = 11,
    .block_elements = 256,
    .block_bytes = 110,
    .sub_block_elements = kSub,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
