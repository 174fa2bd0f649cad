#include "formats/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/range.h"

namespace kvick {
namespace {

Result<std::variant<ScoreEncoder, RankEncoder>> CreateEncoder(const Vocabulary& vocabulary,
                                                              TokenizerData& data) {
  const Fallback fallback{data.unknown_id, data.fuse_unknown};
  if (data.merge_order == MergeOrder::kByScore) {
    return ScoreEncoder::Create(vocabulary, std::move(data.scores), fallback);
  }
  return RankEncoder::Create(vocabulary, data, fallback);
}

Status CheckId(const Vocabulary& vocabulary, std::string_view name, int32_t id) {
  return CheckRange(fmt::format("the {} token", name), id, IntRange{0, vocabulary.size() - 1});
}

Status CheckIds(const Vocabulary& vocabulary, const TokenizerData& data) {
  const std::pair<std::string_view, std::optional<int32_t>> optional_ids[] = {
      {"BOS", data.bos_id}, {"EOS", data.eos_id}, {"unknown", data.unknown_id}};
  for (const auto& [name, id] : optional_ids) {
    if (id) KVICK_RETURN_IF_ERROR(CheckId(vocabulary, name, *id));
  }
  const std::pair<std::string_view, const std::vector<int32_t>*> lists[] = {
      {"end", &data.eos_ids}, {"first", &data.prefix_ids}, {"last", &data.suffix_ids}};
  for (const auto& [name, ids] : lists) {
    for (int32_t id : *ids) KVICK_RETURN_IF_ERROR(CheckId(vocabulary, name, id));
  }
  return {};
}

// Chat formats end a turn with a token of their own, which files do not always name.
constexpr std::string_view kEndPieces[] = {
    "<|eot_id|>", "<|eom_id|>",    "<|end_of_text|>", "<|endoftext|>", "<|im_end|>",
    "<|end|>",    "<end_of_turn>", "<EOT>",           "_<EOT>",        "<end_of_utterance>",
};

std::vector<int32_t> EosIds(const TokenizerData& data) {
  std::vector<int32_t> ids = data.eos_ids;
  if (data.eos_id) ids.push_back(*data.eos_id);
  for (size_t i = 0; i < std::min(data.pieces.size(), data.types.size()); ++i) {
    const bool special =
        data.types[i] == TokenType::kControl || data.types[i] == TokenType::kUserDefined;
    if (special && std::ranges::find(kEndPieces, data.pieces[i]) != std::end(kEndPieces)) {
      ids.push_back(static_cast<int32_t>(i));
    }
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// The bytes of `text` before its first space that follows something else.
size_t WordLength(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? text.size()
                                         : std::min(text.find(' ', begin), text.size());
}

// Whether no merge can reach across the start of a word: a space is a token, and tokens have spaces
// only at their beginning. Then words encode alone as they do in a text, and many times as fast:
// what the merges of a whole book keep sorted fits no cache (1.1 MB of Shakespeare in 0.15 s, uncut
// 1.3 s).
bool CanCutAtSpaces(const Vocabulary& vocabulary, PieceSpelling spelling) {
  if (spelling != PieceSpelling::kSpaceMarkers || vocabulary.Find(" ") == kNoToken) return false;
  return std::ranges::all_of(vocabulary.pieces(), [](const std::string& piece) {
    const std::string bytes = SpacesOfMarkers(piece);
    return WordLength(bytes) == bytes.size();
  });
}

}  // namespace

Result<Tokenizer> Tokenizer::Create(TokenizerData data) {
  std::vector<int32_t> eos_ids = EosIds(data);
  KVICK_ASSIGN_OR_RETURN(
      Vocabulary vocabulary,
      Vocabulary::Create(std::move(data.pieces), std::move(data.types), data.spelling));
  KVICK_RETURN_IF_ERROR(CheckIds(vocabulary, data));
  KVICK_ASSIGN_OR_RETURN(SpecialTokenMatcher special_tokens,
                         SpecialTokenMatcher::Create(vocabulary));
  Tokenizer tokenizer(std::move(vocabulary), std::move(special_tokens));
  KVICK_ASSIGN_OR_RETURN(tokenizer.pretokenizer_, PreTokenizer::Create(data.split_patterns));
  KVICK_ASSIGN_OR_RETURN(tokenizer.encoder_, CreateEncoder(tokenizer.vocabulary_, data));
  tokenizer.spelling_ = data.spelling;
  tokenizer.cuts_at_spaces_ = CanCutAtSpaces(tokenizer.vocabulary_, data.spelling);
  tokenizer.space_prefix_ = data.space_prefix;
  tokenizer.strips_leading_space_ = data.strips_leading_space;
  tokenizer.bos_id_ = data.bos_id;
  tokenizer.eos_ids_ = std::move(eos_ids);
  tokenizer.prefix_ids_ = std::move(data.prefix_ids);
  tokenizer.suffix_ids_ = std::move(data.suffix_ids);
  return tokenizer;
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids;
  if (options.add_special) ids = prefix_ids_;
  const SpecialTokens which =
      options.parse_special ? SpecialTokens::kAll : SpecialTokens::kUserDefinedOnly;
  size_t pos = 0;
  while (const auto special = special_tokens_.FindNext(text, pos, which)) {
    EncodeStretch(text.substr(pos, special->begin - pos), pos, ids);
    ids.push_back(special->id);
    pos = special->end;
  }
  EncodeStretch(text.substr(pos), pos, ids);
  if (options.add_special) ids.insert(ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  return ids;
}

void Tokenizer::EncodeStretch(std::string_view stretch, size_t stretch_begin,
                              std::vector<int32_t>& ids) const {
  if (stretch.empty()) return;
  const bool has_markers = spelling_ == PieceSpelling::kSpaceMarkers &&
                           stretch.find(kSpaceMarker) != std::string_view::npos;
  std::string text = has_markers ? SpacesOfMarkers(stretch) : std::string(stretch);
  if (NeedsSpacePrefix(text, stretch_begin)) text.insert(text.begin(), ' ');
  for (std::string_view rest : pretokenizer_.Split(text)) {
    while (!rest.empty()) {
      const std::string_view word =
          rest.substr(0, cuts_at_spaces_ ? WordLength(rest) : rest.size());
      std::visit([&](const auto& encoder) { encoder.Encode(vocabulary_, word, ids); }, encoder_);
      rest.remove_prefix(word.size());
    }
  }
}

bool Tokenizer::NeedsSpacePrefix(std::string_view text, size_t stretch_begin) const {
  switch (space_prefix_) {
    case SpacePrefix::kNone:
      return false;
    case SpacePrefix::kEveryStretch:
      return true;
    case SpacePrefix::kEveryStretchUnlessSpace:
      return !text.starts_with(' ');
    case SpacePrefix::kTextStartUnlessSpace:
      return stretch_begin == 0 && !text.starts_with(' ');
  }
  return false;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  Detokenizer detokenizer(*this, DecodeFrom::kTextStart);
  for (int32_t id : ids) text += detokenizer.Append(id);
  return text;
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  if (!vocabulary_.Contains(id)) return {};
  const TokenType type = vocabulary_.type(id);
  const bool is_text =
      type == TokenType::kNormal || type == TokenType::kByte || type == TokenType::kUserDefined;
  return is_text ? vocabulary_.bytes(id) : std::string_view();
}

std::string_view Detokenizer::Append(int32_t id) {
  std::string_view bytes = tokenizer_.TokenBytes(id);
  if (bytes.empty()) return bytes;
  if (std::exchange(strip_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
  return bytes;
}

}  // namespace kvick
