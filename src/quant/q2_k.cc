// Q2_K: 256 weights of 2 bits in 16 sub-blocks of 16, 84 bytes.
//
//   u8 sub[16]: of sub-block j the scale in the low half, the minimum in the high one
//   u8 q[64]: q[32 h + i] holds, two bits each, lowest first, codes 128 h + i, 128 h + 32 + i,
//   128 h + 64 + i and 128 h + 96 + i
//   f16 d, dmin
//   weight = d * scale * code - dmin * minimum

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kSubBlocks = 16, kSub = 16;
constexpr int kCodes = 16, kScales = 80;  // offsets

void Unpack(const std::byte* block, UnpackedBlock& out) {
  const float d = LoadF16(block + kScales), dmin = LoadF16(block + kScales + 2);
  for (int j = 0; j < kSubBlocks; ++j) {
    out.scales[j] = d * static_cast<float>(LowNibble(block, j));
    out.minimums[j] = -(dmin * static_cast<float>(HighNibble(block, j)));
  }
  for (int i = 0; i < kSubBlocks * kSub; ++i) {
    const int q = Byte(block, kCodes + i / 128 * 32 + i % 32);
    out.codes[i] = static_cast<int8_t>(q >> (i / 32 % 4 * 2) & 3);
  }
}

void Pack(const float* values, std::byte* block) {
  const SubScales sub = ChooseScalesAndMinimums(values, {kSubBlocks, kSub, 3, 15});
  StoreF16(sub.d, block + kScales);
  StoreF16(sub.dmin, block + kScales + 2);
  for (int j = 0; j < kSubBlocks; ++j) {
    block[j] = static_cast<std::byte>(sub.scales[j] | sub.minimums[j] << 4);
  }
  std::memset(block + kCodes, 0, kScales - kCodes);
  for (int i = 0; i < kSubBlocks * kSub; ++i) {
    const int code = sub.Code(values[i], i / kSub, 0, 3);
    block[kCodes + i / 128 * 32 + i % 32] |= static_cast<std::byte>(code << (i / 32 % 4 * 2));
  }
}

}  // namespace

constexpr WeightFormat kQ2_KFormat{
    .type = WeightType::kQ2_K,
    .name = "q2_k",
    .gguf_name = "Q2_K",
    .gguf_type = 10,
    .block_elements = 256,
    .block_bytes = 84,
    .sub_block_elements = kSub,
    .has_minimums = true,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
