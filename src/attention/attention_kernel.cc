#include "attention/attention_kernel.h"

namespace kvick {

const AttentionKernel& AttentionKernelFor(Isa isa, DType dtype) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx && dtype == DType::kBF16) return TileAttentionKernel();
  if (isa == Isa::kAmxEmulated && dtype == DType::kBF16) return EmulatedTileAttentionKernel();
#endif
  return VectorAttentionKernel(isa, dtype);
}

}  // namespace kvick
