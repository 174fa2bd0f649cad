#include "formats/tokenizer_hf_vocabulary.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/piece_spelling.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using nlohmann::json;

// A merge is "left right" or ["left", "right"].
Result<MergeRule> ReadMerge(const json& merge) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ', 1);
    if (space != std::string::npos && space + 1 < text.size()) {
      return MergeRule{text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return MergeRule{merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  return Fail(ErrorCode::kCorrupt, "model.merges: expected pairs of pieces, got {}",
              JsonText(merge));
}

// Refuses what would encode in a way that kvick does not know.
Status CheckPlainBpe(const JsonMembers& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    KVICK_ASSIGN_OR_RETURN(const std::string affix, model.StringOr(key, ""));
    if (affix.empty()) continue;
    return Fail(ErrorCode::kUnsupported, "{}: expected \"\", got {}", model.Label(key),
                Quoted(affix));
  }
  KVICK_ASSIGN_OR_RETURN(const double dropout, model.FloatOr("dropout", {0, 1}, 0));
  if (dropout != 0) {
    return Fail(ErrorCode::kUnsupported, "{}: expected 0, got {}", model.Label("dropout"), dropout);
  }
  return {};
}

}  // namespace

Status HfVocabularyReader::ReadModel(const json& value) {
  const JsonMembers model(value, "model");
  KVICK_ASSIGN_OR_RETURN(const std::string type, model.StringOr("type", "BPE"));
  if (type == "BPE") return ReadBpe(model);
  if (type == "Unigram") return ReadUnigram(model);
  return Fail(ErrorCode::kUnsupported, "{}: expected BPE or Unigram, got {}", model.Label("type"),
              Quoted(type));
}

Status HfVocabularyReader::ReadBpe(const JsonMembers& model) {
  KVICK_RETURN_IF_ERROR(CheckPlainBpe(model));
  KVICK_ASSIGN_OR_RETURN(const bool byte_fallback, model.BoolOr("byte_fallback", false));
  KVICK_ASSIGN_OR_RETURN(data_.whole_words_first, model.BoolOr("ignore_merges", false));
  KVICK_ASSIGN_OR_RETURN(data_.fuse_unknown, model.BoolOr("fuse_unk", false));
  KVICK_ASSIGN_OR_RETURN(const json* vocabulary, model.Object("vocab"));
  KVICK_ASSIGN_OR_RETURN(const json* merges, model.Array("merges"));
  KVICK_RETURN_IF_ERROR(ReadPieces(*vocabulary, byte_fallback));
  return ReadMerges(*merges);
}

Status HfVocabularyReader::ReadUnigram(const JsonMembers& model) {
  data_.encoder = EncoderKind::kUnigram;
  KVICK_ASSIGN_OR_RETURN(const bool byte_fallback, model.BoolOr("byte_fallback", false));
  KVICK_ASSIGN_OR_RETURN(const json* vocabulary, model.Array("vocab"));
  KVICK_RETURN_IF_ERROR(ReadScoredPieces(*vocabulary, byte_fallback));
  if (model.Find("unk_id") == nullptr) return {};
  const IntRange ids{0, static_cast<int64_t>(vocabulary->size()) - 1};
  KVICK_ASSIGN_OR_RETURN(const int64_t unknown_id, model.Int("unk_id", ids));
  data_.unknown_id = static_cast<int32_t>(unknown_id);
  return {};
}

// A list of ["piece", score]; ids are places in it.
Status HfVocabularyReader::ReadScoredPieces(const json& vocabulary, bool byte_fallback) {
  constexpr double kUnknownPenalty = 10;
  double min_score = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const json& entry = vocabulary[id];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return Fail(ErrorCode::kCorrupt, "model.vocab[{}]: expected a piece and its score, got {}",
                  id, JsonText(entry));
    }
    Grow(id);
    SetPiece(id, entry[0].get_ref<const std::string&>(), byte_fallback);
    data_.scores[id] = entry[1].get<double>();
    min_score = std::min(min_score, data_.scores[id]);
  }
  data_.unknown_score = min_score - kUnknownPenalty;
  return {};
}

void HfVocabularyReader::SetPiece(size_t id, std::string_view piece, bool byte_fallback) {
  const bool is_byte = byte_fallback && ParseBytePiece(piece).has_value();
  data_.pieces[id] = piece;
  data_.types[id] = is_byte ? TokenType::kByte : TokenType::kNormal;
  data_.in_model[id] = true;
  by_piece_.Insert(data_.pieces, static_cast<int32_t>(id));
}

// Makes room for token `id`; new places are holes.
void HfVocabularyReader::Grow(size_t id) {
  if (id < data_.pieces.size()) return;
  data_.pieces.resize(id + 1);
  data_.types.resize(id + 1, TokenType::kUnused);
  data_.in_model.resize(id + 1, false);
  added_.resize(id + 1, -1);
  if (data_.encoder == EncoderKind::kUnigram) data_.scores.resize(id + 1);
}

Status HfVocabularyReader::ReadPieces(const json& vocabulary, bool byte_fallback) {
  for (const auto& [piece, value] : vocabulary.items()) {
    const std::string label = "model.vocab: the id of " + Quoted(piece);
    KVICK_ASSIGN_OR_RETURN(const int64_t number, JsonInt(value, label, id_range()));
    const auto id = static_cast<size_t>(number);
    Grow(id);
    if (data_.in_model[id]) {
      return Fail(ErrorCode::kCorrupt, "model.vocab: {} and {} have the same id {}",
                  Quoted(data_.pieces[id]), Quoted(piece), id);
    }
    SetPiece(id, piece, byte_fallback);
  }
  return {};
}

Status HfVocabularyReader::ReadMerges(const json& merges) {
  data_.merges.reserve(merges.size());
  for (const json& merge : merges) {
    KVICK_ASSIGN_OR_RETURN(MergeRule rule, ReadMerge(merge));
    data_.merges.push_back(std::move(rule));
  }
  return {};
}

Status HfVocabularyReader::AddToken(AddedToken token, std::string_view label) {
  if (token.content.empty()) return {};
  if (const std::optional<int32_t> known = Find(token.content)) token.id = *known;
  const auto id = static_cast<size_t>(token.id);
  Grow(id);
  if (data_.types[id] != TokenType::kUnused && data_.pieces[id] != token.content) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an id of its own for {}, got {}, which is {}",
                label, Quoted(token.content), id, Quoted(data_.pieces[id]));
  }
  if (data_.types[id] == TokenType::kUnused) {
    data_.pieces[id] = token.content;
    by_piece_.Insert(data_.pieces, token.id);
  }
  if (const int32_t index = IndexOfAdded(token.id); index >= 0) {
    AddedToken& known = data_.added_tokens[static_cast<size_t>(index)];
    token.special = token.special || known.special;
    known = token;
  } else {
    added_[id] = static_cast<int32_t>(data_.added_tokens.size());
    data_.added_tokens.push_back(token);
  }
  data_.types[id] = token.special ? TokenType::kControl : TokenType::kUserDefined;
  return {};
}

std::optional<int32_t> HfVocabularyReader::Find(std::string_view content) const {
  const int32_t id = by_piece_.Find(data_.pieces, content);
  return id == kNoToken ? std::nullopt : std::optional<int32_t>(id);
}

Result<AddedToken> ReadHfAddedToken(const JsonMembers& members) {
  AddedToken token;
  KVICK_ASSIGN_OR_RETURN(token.content, members.String("content"));
  KVICK_ASSIGN_OR_RETURN(token.special, members.BoolOr("special", false));
  KVICK_ASSIGN_OR_RETURN(token.normalized, members.BoolOr("normalized", !token.special));
  KVICK_ASSIGN_OR_RETURN(token.single_word, members.BoolOr("single_word", false));
  KVICK_ASSIGN_OR_RETURN(token.lstrip, members.BoolOr("lstrip", false));
  KVICK_ASSIGN_OR_RETURN(token.rstrip, members.BoolOr("rstrip", false));
  return token;
}

}  // namespace kvick
