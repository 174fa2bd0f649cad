// IQ4_XS: 256 weights of 4 bits, which index a table, in 8 sub-blocks of 32, 136 bytes.
//
//   f16 d;  u16 high: the upper two bits of scale j are bits 2 j and 2 j + 1
//
//   u8 low[4]: the lower four bits of scales 2 k and 2 k + 1 are the low and the high half of
//   low[k]
//
//   u8 q[128]: the low half of q[16 j + i] is index 32 j + i, the high half index 32 j + 16 + i
//
//   weight = d * (scale - 32) * values[index]

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"
#include "quant/iq4_values.h"

namespace kvick {
namespace {

constexpr int kSubBlocks = 8, kSub = 32, kElements = kSubBlocks * kSub;
constexpr int kHigh = 2, kLow = 4, kCodes = 8, kBytes = 136;  // offsets
constexpr int kScaleOffset = 32;

int PlaceOf(int i) { return kCodes + i / 32 * 16 + i % 16; }
int ShiftOf(int i) { return i / 16 % 2 * 4; }

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const float d = LoadF16(block);
  for (int j = 0; j < kSubBlocks; ++j) {
    const int low = Byte(block, kLow + j / 2) >> (j % 2 * 4) & 15;
    const int high = LoadU16(block + kHigh) >> (2 * j) & 3;
    out.scales[j] = d * static_cast<float>((low | high << 4) - kScaleOffset);
    out.minimums[j] = 0.0f;
  }
  for (int i = 0; i < kElements; ++i) {
    const int index = Byte(block, PlaceOf(i)) >> ShiftOf(i) & 15;
    out.codes[i] = kIq4Values[static_cast<size_t>(index)];
  }
}

void Pack(const float* values, std::byte* block) {
  const SubScales sub = ChooseScales(values, {kSubBlocks, kSub, 113, 31});
  std::memset(block, 0, kBytes);
  StoreF16(sub.d, block);
  int high = 0;
  for (int j = 0; j < kSubBlocks; ++j) {
    const int scale = sub.scales[j] + kScaleOffset;
    block[kLow + j / 2] |= static_cast<std::byte>((scale & 15) << (j % 2 * 4));
    high |= (scale >> 4) << (2 * j);
  }
  StoreU16(static_cast<uint16_t>(high), block + kHigh);
  for (int i = 0; i < kElements; ++i) {
    const float scale = sub.d * static_cast<float>(sub.scales[i / kSub]);
    block[PlaceOf(i)] |= static_cast<std::byte>(NearestIq4(values[i], scale) << ShiftOf(i));
  }
}

}  // namespace

constexpr WeightFormat kIQ4_XSFormat{
    .type = WeightType::kIQ4_XS,
    .name = "iq4_xs",
    .gguf_name = "IQ4_XS",
    .gguf_type = 23,
    .block_elements = 256,
    .block_bytes = 136,
    .sub_block_elements = kSub,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
