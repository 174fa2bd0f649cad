#ifndef KVICK_FORMATS_TOKENIZER_HF_VOCABULARY_H_
#define KVICK_FORMATS_TOKENIZER_HF_VOCABULARY_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/json_members.h"
#include "formats/token_index.h"
#include "formats/tokenizer_data.h"
#include "kvick/status.h"

namespace kvick {

// Reads the tokens of a tokenizer.json, and those that tokenizer_config.json adds or changes.
class HfVocabularyReader {
 public:
  // At most `max_tokens` ids: holes in the vocabulary cost memory, so the files must have tokens to
  // justify them.
  HfVocabularyReader(TokenizerData& data, size_t max_tokens)
      : data_(data), by_piece_(max_tokens), max_tokens_(max_tokens) {}

  // Errors  corrupt: a wrong member, an id twice or out of range;  unsupported: neither BPE nor
  //         Unigram
  Status ReadModel(const nlohmann::json& model);

  // Adds one token, or changes its flags where there is one of this content; that keeps its id, and
  // stays special once it is. Errors  corrupt: its id is another token's
  Status AddToken(AddedToken token, std::string_view label);

  // The id of a token by its content.
  std::optional<int32_t> Find(std::string_view content) const;
  bool IsAdded(int32_t id) const { return IndexOfAdded(id) >= 0; }

  IntRange id_range() const { return {0, static_cast<int64_t>(max_tokens_) - 1}; }

 private:
  Status ReadBpe(const JsonMembers& model);
  Status ReadUnigram(const JsonMembers& model);
  Status ReadPieces(const nlohmann::json& vocabulary, bool byte_fallback);
  Status ReadScoredPieces(const nlohmann::json& vocabulary, bool byte_fallback);
  void SetPiece(size_t id, std::string_view piece, bool byte_fallback);
  Status ReadMerges(const nlohmann::json& merges);
  void Grow(size_t id);
  int32_t IndexOfAdded(int32_t id) const {
    return static_cast<size_t>(id) < added_.size() ? added_[static_cast<size_t>(id)] : -1;
  }

  TokenizerData& data_;
  TokenIndex by_piece_;
  size_t max_tokens_;
  std::vector<int32_t> added_;  // by id: the place in data_.added_tokens, or -1
};

// The flags of an added token; "content" is needed, the others may be absent.
Result<AddedToken> ReadHfAddedToken(const JsonMembers& members);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_VOCABULARY_H_
