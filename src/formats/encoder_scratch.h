#ifndef KVICK_FORMATS_ENCODER_SCRATCH_H_
#define KVICK_FORMATS_ENCODER_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "formats/bpe_merge.h"

namespace kvick {

// The best way to a place in a text: its last token, where that begins, and the sum of the scores.
struct UnigramStep {
  static constexpr uint32_t kNone = UINT32_MAX;

  double score = 0;
  uint32_t begin = kNone;
  int32_t id = -1;
};

// What the encoders work on. One for all pieces of a text saves allocations.
struct EncoderScratch {
  BpeScratch bpe;
  std::vector<UnigramStep> steps;  // by the place where they end
  std::vector<uint32_t> ends;      // of the tokens, the last first
};

}  // namespace kvick

#endif  // KVICK_FORMATS_ENCODER_SCRATCH_H_
