#include "formats/split_pieces.h"

#include <algorithm>
#include <utility>

namespace kvick {
namespace {

// Joins each part for which `joins(previous, part)` holds to the piece before it.
template <class Joins>
void AppendJoined(const std::vector<SplitPart>& parts, Joins joins, std::vector<TextSpan>& pieces) {
  bool was_match = false;
  bool is_first = true;
  for (const SplitPart& part : parts) {
    if (!is_first && joins(was_match, part.is_match)) {
      pieces.back().end = part.span.end;
    } else {
      pieces.push_back(part.span);
    }
    was_match = part.is_match;
    is_first = false;
  }
}

// The mirror image: from right to left, a match that is followed by none goes to what follows it.
void AppendMergedWithNext(const std::vector<SplitPart>& parts, std::vector<TextSpan>& pieces) {
  const auto num_before = static_cast<ptrdiff_t>(pieces.size());
  bool was_match = false;
  for (size_t i = parts.size(); i-- > 0;) {
    const bool is_last = i + 1 == parts.size();
    if (!is_last && parts[i].is_match && !was_match) {
      pieces.back().begin = parts[i].span.begin;
    } else {
      pieces.push_back(parts[i].span);
    }
    was_match = parts[i].is_match;
  }
  std::reverse(pieces.begin() + num_before, pieces.end());
}

}  // namespace

void AppendParts(TextSpan whole, const std::vector<TextSpan>& matches,
                 std::vector<SplitPart>& parts) {
  size_t end = whole.begin;
  for (const TextSpan& match : matches) {
    if (end != match.begin) parts.push_back({{end, match.begin}, false});
    parts.push_back({match, true});
    end = match.end;
  }
  if (end != whole.end) parts.push_back({{end, whole.end}, false});
}

void AppendPieces(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                  std::vector<TextSpan>& pieces) {
  const auto num_before = static_cast<ptrdiff_t>(pieces.size());
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const SplitPart& part : parts) {
        if (!part.is_match) pieces.push_back(part.span);
      }
      break;
    case SplitBehavior::kIsolated:
      for (const SplitPart& part : parts) pieces.push_back(part.span);
      break;
    case SplitBehavior::kMergedWithPrevious:
      AppendJoined(
          parts, [](bool was_match, bool is_match) { return is_match && !was_match; }, pieces);
      break;
    case SplitBehavior::kMergedWithNext:
      AppendMergedWithNext(parts, pieces);
      break;
    case SplitBehavior::kContiguous:
      AppendJoined(
          parts, [](bool was_match, bool is_match) { return was_match == is_match; }, pieces);
      break;
  }
  pieces.erase(std::remove_if(pieces.begin() + num_before, pieces.end(),
                              [](const TextSpan& span) { return span.begin == span.end; }),
               pieces.end());
}

}  // namespace kvick
