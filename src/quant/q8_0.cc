// Q8_0: 32 weights of 8 bits and one scale, 34 bytes.
//
//   f16 d;  i8 code[32]
//   weight = d * code

#include "quant/block_bytes.h"
#include "quant/choose_codes.h"
#include "quant/formats.h"

namespace kvick {
namespace {

constexpr int kElements = 32;

void Unpack(const std::byte* block, UnpackedBlock& out) {
  out.scales[0] = LoadF16(block);
  out.minimums[0] = 0.0f;
  std::memcpy(out.codes, block + 2, kElements);
}

void Pack(const float* values, std::byte* block) {
  const float d = StoreF16(LargestMagnitude(values, kElements) / 127, block);
  for (int i = 0; i < kElements; ++i) {
    block[2 + i] = static_cast<std::byte>(NearestCode(values[i], d, -128, 127));
  }
}

}  // namespace

constexpr WeightFormat kQ8_0Format{
    .type = WeightType::kQ8_0,
    .name = "q8_0",
    .gguf_name = "Q8_0",
    .gguf_type = 8,
    .block_elements = 32,
    .block_bytes = 34,
    .sub_block_elements = 32,
    .unpack = Unpack,
    .pack = Pack,
};

}  // namespace kvick
