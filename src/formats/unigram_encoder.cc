#include "formats/unigram_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "formats/utf8.h"

namespace kvick {

Result<UnigramEncoder> UnigramEncoder::Create(const Vocabulary& vocabulary, TokenizerData& data) {
  if (data.scores.size() != static_cast<size_t>(vocabulary.size())) {
    return Fail(ErrorCode::kCorrupt, "tokenizer: expected {} scores, one for each token, got {}",
                vocabulary.size(), data.scores.size());
  }
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!std::isfinite(data.scores[id])) {
      return Fail(ErrorCode::kCorrupt, "score of token {}: expected a finite number, got {}", id,
                  data.scores[id]);
    }
    if (data.in_model[id] && !vocabulary.pieces()[id].empty()) ids.push_back(id);
  }
  UnigramEncoder encoder;
  encoder.trie_ = PieceTrie(vocabulary.pieces(), std::move(ids));
  encoder.scores_ = std::move(data.scores);
  encoder.unknown_score_ = data.unknown_score;
  encoder.unknown_id_ = data.unknown_id.value_or(kNoToken);
  return encoder;
}

void UnigramEncoder::FindBestPath(std::string_view text, std::vector<UnigramStep>& steps) const {
  steps.assign(text.size() + 1, {});
  const auto offer = [&](size_t end, const UnigramStep& step) {
    UnigramStep& best = steps[end];
    if (best.begin == UnigramStep::kNone || step.score > best.score) best = step;
  };
  for (uint32_t begin = 0; begin < text.size();) {
    const double score = steps[begin].score;
    const size_t character_bytes = CharacterBytes(text.substr(begin));
    bool has_character = false;
    trie_.ForEachPrefix(text.substr(begin), [&](size_t num_bytes, int32_t id) {
      offer(begin + num_bytes, {scores_[id] + score, begin, id});
      has_character = has_character || num_bytes == character_bytes;
    });
    if (!has_character) {
      offer(begin + character_bytes, {unknown_score_ + score, begin, unknown_id_});
    }
    begin += static_cast<uint32_t>(character_bytes);
  }
}

void UnigramEncoder::AppendUnknown(const Vocabulary& vocabulary, std::string_view text,
                                   std::vector<int32_t>& ids) const {
  if (const int32_t id = trie_.Find(text); id != kNoToken) {
    ids.push_back(id);
  } else if (!vocabulary.AppendByteTokens(text, ids) && unknown_id_ != kNoToken) {
    ids.push_back(unknown_id_);
  }
}

void UnigramEncoder::Encode(const Vocabulary& vocabulary, std::string_view text,
                            EncoderScratch& scratch, std::vector<int32_t>& ids) const {
  FindBestPath(text, scratch.steps);
  std::vector<uint32_t>& ends = scratch.ends;
  ends.clear();
  for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = scratch.steps[end].begin) {
    ends.push_back(end);
  }
  uint32_t begin = 0;
  for (size_t i = ends.size(); i-- > 0;) {
    const int32_t id = scratch.steps[ends[i]].id;
    if (id != unknown_id_) {
      ids.push_back(id);
      begin = ends[i];
      continue;
    }
    const bool goes_on = i > 0 && scratch.steps[ends[i - 1]].id == unknown_id_;
    if (goes_on) continue;
    AppendUnknown(vocabulary, text.substr(begin, ends[i] - begin), ids);
    begin = ends[i];
  }
}

}  // namespace kvick
