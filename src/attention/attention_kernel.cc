#include "attention/attention_kernel.h"

namespace kvick {

const AttentionKernel& AttentionKernelFor(Isa isa, DType dtype) {
#if defined(__x86_64__)
  if (UsesTiles(isa, dtype)) {
    return isa == Isa::kAmx ? TileAttentionKernel() : EmulatedTileAttentionKernel();
  }
#endif
  return VectorAttentionKernel(isa, dtype);
}

}  // namespace kvick
