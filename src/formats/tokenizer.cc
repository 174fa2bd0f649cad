#include "formats/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/range.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

Result<std::variant<ScoreEncoder, RankEncoder>> CreateEncoder(const Vocabulary& vocabulary,
                                                              TokenizerData& data) {
  if (data.merge_order == MergeOrder::kByScore) return ScoreEncoder::Create(vocabulary, data);
  return RankEncoder::Create(vocabulary, data);
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

// The bytes of `text` before its first marker that follows something else.
size_t WordLength(std::string_view text) {
  size_t begin = 0;
  while (text.substr(begin).starts_with(kSpaceMarker)) begin += kSpaceMarker.size();
  return std::min(text.find(kSpaceMarker, begin), text.size());
}

// Whether no merge can reach across the start of a word: the space marker is a token, and tokens
// have markers only at their beginning. Then words encode alone as they do in a text, and many
// times as fast: what the merges of a whole book keep sorted fits no cache (1.1 MB of Shakespeare
// in 0.15 s, uncut 1.3 s).
bool CanCutAtMarkers(const Vocabulary& vocabulary, const TokenizerData& data) {
  if (vocabulary.Find(kSpaceMarker) == kNoToken) return false;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& piece = vocabulary.pieces()[id];
    if (data.in_model[id] && WordLength(piece) != piece.size()) return false;
  }
  return true;
}

}  // namespace

Result<Tokenizer> Tokenizer::Create(TokenizerData data) {
  std::vector<int32_t> eos_ids = EosIds(data);
  KVICK_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Create(data));
  KVICK_RETURN_IF_ERROR(CheckIds(vocabulary, data));
  Tokenizer tokenizer(std::move(vocabulary));
  KVICK_ASSIGN_OR_RETURN(tokenizer.encoder_, CreateEncoder(tokenizer.vocabulary_, data));
  tokenizer.cuts_at_markers_ = CanCutAtMarkers(tokenizer.vocabulary_, data);
  tokenizer.normalizer_ = Normalizer(std::move(data.normalizer));
  tokenizer.pretokenizer_ = PreTokenizer(std::move(data.pretokenizer));
  KVICK_RETURN_IF_ERROR(tokenizer.SetDecoder(data));
  KVICK_RETURN_IF_ERROR(tokenizer.SetAddedTokens(data.added_tokens));
  tokenizer.bos_id_ = data.bos_id;
  tokenizer.eos_ids_ = std::move(eos_ids);
  tokenizer.prefix_ids_ = std::move(data.prefix_ids);
  tokenizer.suffix_ids_ = std::move(data.suffix_ids);
  return tokenizer;
}

Status Tokenizer::SetAddedTokens(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> as_typed, normalized;
  for (const AddedToken& token : tokens) {
    if (!token.normalized) {
      as_typed.push_back(token);
      continue;
    }
    RegexWork work(token.content.size());
    KVICK_ASSIGN_OR_RETURN(NormalizedText text, normalizer_.Normalize(token.content, work));
    normalized.push_back(token);
    normalized.back().content = std::move(text.text);
  }
  KVICK_ASSIGN_OR_RETURN(added_tokens_, AddedTokenFinder::Create(std::move(as_typed)));
  KVICK_ASSIGN_OR_RETURN(normalized_added_tokens_, AddedTokenFinder::Create(std::move(normalized)));
  return {};
}

// An added token is spelled as it is looked for. Where a byte-level decoder would make invalid
// UTF-8 of it, it was never spelled byte by byte.
Status Tokenizer::SetDecoder(TokenizerData& data) {
  decoder_ = std::move(data.decoder);
  token_bytes_.resize(vocabulary_.pieces().size());
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (!IsText(id)) continue;
    KVICK_ASSIGN_OR_RETURN(token_bytes_[id],
                           decoder_.TokenBytes(vocabulary_.pieces()[id], /*is_first=*/false));
  }
  for (const AddedToken& token : data.added_tokens) {
    if (!vocabulary_.Contains(token.id) || !IsText(token.id)) continue;
    std::string spelled = token.content;
    if (token.normalized) {
      RegexWork work(spelled.size());
      KVICK_ASSIGN_OR_RETURN(NormalizedText text, normalizer_.Normalize(spelled, work));
      spelled = std::move(text.text);
    }
    std::string& bytes = token_bytes_[token.id];
    KVICK_ASSIGN_OR_RETURN(bytes, decoder_.TokenBytes(spelled, /*is_first=*/false));
    if (!data.decodes_added_tokens || !IsUtf8(bytes)) bytes = token.content;
  }
  return {};
}

bool Tokenizer::IsText(int32_t id) const {
  const TokenType type = vocabulary_.type(id);
  return type == TokenType::kNormal || type == TokenType::kByte || type == TokenType::kUserDefined;
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids;
  if (options.add_special) ids = prefix_ids_;
  const SpecialTokens specials =
      options.parse_special ? SpecialTokens::kAsTokens : SpecialTokens::kAsText;
  RegexWork work(text.size());
  for (const auto& part : added_tokens_.Find(text, specials)) {
    if (part.id != kNoToken) {
      ids.push_back(part.id);
      continue;
    }
    const std::string_view stretch = text.substr(part.begin, part.end - part.begin);
    KVICK_ASSIGN_OR_RETURN(NormalizedText normalized, normalizer_.Normalize(stretch, work));
    const bool at_start = part.begin == 0 && normalized.keeps_start;
    for (const auto& inner : normalized_added_tokens_.Find(normalized.text, specials)) {
      if (inner.id != kNoToken) {
        ids.push_back(inner.id);
        continue;
      }
      const std::string_view rest =
          std::string_view(normalized.text).substr(inner.begin, inner.end - inner.begin);
      KVICK_RETURN_IF_ERROR(EncodeStretch(rest, at_start && inner.begin == 0, work, ids));
    }
  }
  if (options.add_special) ids.insert(ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  return ids;
}

Status Tokenizer::EncodeStretch(std::string_view stretch, bool at_start, RegexWork& work,
                                std::vector<int32_t>& ids) const {
  PreTokenizer::Pieces pieces{std::string(stretch), {{0, stretch.size()}}, at_start};
  KVICK_RETURN_IF_ERROR(pretokenizer_.Split(pieces, work));
  for (const TextSpan& span : pieces.spans) {
    EncodePiece(std::string_view(pieces.text).substr(span.begin, span.end - span.begin), ids);
  }
  return {};
}

void Tokenizer::EncodePiece(std::string_view piece, std::vector<int32_t>& ids) const {
  while (!piece.empty()) {
    const std::string_view word =
        piece.substr(0, cuts_at_markers_ ? WordLength(piece) : piece.size());
    std::visit([&](const auto& encoder) { encoder.Encode(vocabulary_, word, ids); }, encoder_);
    piece.remove_prefix(word.size());
  }
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  Detokenizer detokenizer(*this, DecodeFrom::kTextStart);
  for (int32_t id : ids) text += detokenizer.Append(id);
  return text;
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  return vocabulary_.Contains(id) ? std::string_view(token_bytes_[id]) : std::string_view();
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DecodeFrom from)
    : tokenizer_(tokenizer),
      is_first_(from == DecodeFrom::kTextStart),
      num_strips_left_(is_first_ ? tokenizer.decoder_.max_start_strips : 0) {}

std::string_view Detokenizer::Append(int32_t id) {
  if (!tokenizer_.vocabulary_.Contains(id) || !tokenizer_.IsText(id)) return {};
  const Decoder& decoder = tokenizer_.decoder_;
  std::string_view bytes = tokenizer_.TokenBytes(id);
  const bool is_first = std::exchange(is_first_, false);
  if (is_first && decoder.HasFirstToken()) {
    const std::string& piece = tokenizer_.vocabulary_.pieces()[id];
    if (Result<std::string> first = decoder.TokenBytes(piece, /*is_first=*/true)) {
      bytes = bytes_ = *std::move(first);
    }
  }
  return StripStart(bytes);
}

std::string_view Detokenizer::StripStart(std::string_view bytes) {
  const std::string& content = tokenizer_.decoder_.strip_content;
  while (num_strips_left_ > 0 && bytes.starts_with(content)) {
    bytes.remove_prefix(content.size());
    --num_strips_left_;
  }
  if (!bytes.empty()) num_strips_left_ = 0;
  return bytes;
}

}  // namespace kvick
