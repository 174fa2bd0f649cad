#ifndef KVICK_FORMATS_SPLIT_PIECES_H_
#define KVICK_FORMATS_SPLIT_PIECES_H_

#include <vector>

#include "formats/pretokenizer.h"

namespace kvick {

// A part of a piece: a match, or what lies between two.
struct SplitPart {
  TextSpan span;
  bool is_match;
};

// The parts of `whole` that `matches` leave: the matches and the stretches between them, in order.
void AppendParts(TextSpan whole, const std::vector<TextSpan>& matches,
                 std::vector<SplitPart>& parts);

// Appends the pieces that `parts` make; empty ones are dropped.
void AppendPieces(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                  std::vector<TextSpan>& pieces);

}  // namespace kvick

#endif  // KVICK_FORMATS_SPLIT_PIECES_H_
