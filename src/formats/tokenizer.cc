#include "formats/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/range.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr size_t kMaxPieceBytes = std::numeric_limits<uint32_t>::max();  // BpeSymbol counts so far

Result<std::variant<ScoreEncoder, RankEncoder, UnigramEncoder>> CreateEncoder(
    const Vocabulary& vocabulary, TokenizerData& data) {
  switch (data.encoder) {
    case EncoderKind::kMergesByScore:
      return ScoreEncoder::Create(vocabulary, data);
    case EncoderKind::kMergesByRank:
      return RankEncoder::Create(vocabulary, data);
    case EncoderKind::kUnigram:
      return UnigramEncoder::Create(vocabulary, data);
  }
  return Fail(ErrorCode::kInternal, "tokenizer: unknown kind of encoder");
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
// have markers only at their beginning. Sums of scores do reach across. Then words encode alone as
// they do in a text, and many times as fast: what the merges of a whole book keep sorted fits no
// cache (1.1 MB of Shakespeare in 0.15 s, uncut 1.3 s).
bool CanCutAtMarkers(const Vocabulary& vocabulary, const TokenizerData& data) {
  if (data.encoder == EncoderKind::kUnigram) return false;
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
  KVICK_RETURN_IF_ERROR(tokenizer.NormalizeAddedTokens(data.added_tokens));
  KVICK_RETURN_IF_ERROR(tokenizer.SetDecoder(data));
  KVICK_RETURN_IF_ERROR(tokenizer.SetAddedTokens(std::move(data.added_tokens)));
  tokenizer.bos_id_ = data.bos_id;
  tokenizer.eos_ids_ = std::move(eos_ids);
  tokenizer.prefix_ids_ = std::move(data.prefix_ids);
  tokenizer.suffix_ids_ = std::move(data.suffix_ids);
  return tokenizer;
}

// What is looked for in a normalized text, and decoded, is the normal form.
Status Tokenizer::NormalizeAddedTokens(std::vector<AddedToken>& tokens) {
  size_t num_bytes = 0;
  for (const AddedToken& token : tokens) num_bytes += token.content.size();
  RegexWork work(num_bytes);
  for (AddedToken& token : tokens) {
    if (!token.normalized) continue;
    KVICK_ASSIGN_OR_RETURN(NormalizedText normal, normalizer_.Normalize(token.content, work));
    KVICK_RETURN_IF_ERROR(CheckAddedTokenSize(token.id, normal.text.size()));
    if (normal.text == token.content) continue;
    token.content = std::move(normal.text);
    normal_forms_[token.id] = token.content;
  }
  return {};
}

Status Tokenizer::SetAddedTokens(std::vector<AddedToken> tokens) {
  const auto normalized = std::stable_partition(
      tokens.begin(), tokens.end(), [](const AddedToken& token) { return !token.normalized; });
  std::vector<AddedToken> in_normalized(std::make_move_iterator(normalized),
                                        std::make_move_iterator(tokens.end()));
  tokens.erase(normalized, tokens.end());
  KVICK_ASSIGN_OR_RETURN(added_tokens_, AddedTokenFinder::Create(std::move(tokens)));
  KVICK_ASSIGN_OR_RETURN(normalized_added_tokens_,
                         AddedTokenFinder::Create(std::move(in_normalized)));
  return {};
}

// An added token is spelled as it is looked for. Where a byte-level decoder would make invalid
// UTF-8 of it, it was never spelled byte by byte.
Status Tokenizer::SetDecoder(TokenizerData& data) {
  decoder_ = std::move(data.decoder);
  size_t num_bytes = 0;
  for (const std::string& piece : vocabulary_.pieces()) num_bytes += piece.size();
  RegexWork work(num_bytes);
  token_bytes_.resize(vocabulary_.pieces().size());
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (!IsText(id)) continue;
    KVICK_ASSIGN_OR_RETURN(token_bytes_[id],
                           decoder_.TokenBytes(Spelling(id), /*is_first=*/false, work));
  }
  for (const AddedToken& token : data.added_tokens) {
    if (!vocabulary_.Contains(token.id) || !IsText(token.id)) continue;
    std::string& bytes = token_bytes_[token.id];
    if (!data.decodes_added_tokens || !IsUtf8(bytes)) bytes = vocabulary_.pieces()[token.id];
  }
  return {};
}

const std::string& Tokenizer::Spelling(int32_t id) const {
  const auto normal = normal_forms_.find(id);
  return normal != normal_forms_.end() ? normal->second : vocabulary_.pieces()[id];
}

bool Tokenizer::IsText(int32_t id) const {
  const TokenType type = vocabulary_.type(id);
  return type == TokenType::kNormal || type == TokenType::kByte || type == TokenType::kUserDefined;
}

// What one text may use while it is encoded, and its ids so far. A step may add something to each
// stretch between added tokens, so that what it makes of all of them is limited too.
struct Tokenizer::Encoding {
  explicit Encoding(size_t text_bytes)
      : work(text_bytes), bytes_left(std::min(4 * MaxRewrittenBytes(text_bytes), kMaxPieceBytes)) {}

  // Errors  exhausted: `num_bytes`, made of a stretch, are too many
  Status Spend(size_t num_bytes) {
    if (num_bytes > bytes_left) {
      return Fail(ErrorCode::kExhausted, "the tokenizer's steps make the text too large");
    }
    bytes_left -= num_bytes;
    return {};
  }

  RegexWork work;
  size_t bytes_left;
  EncoderScratch scratch;
  std::vector<int32_t> ids;
};

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    return Fail(ErrorCode::kExhausted, "the text: expected at most {} bytes, got {}", kMaxTextBytes,
                text.size());
  }
  Encoding encoding(text.size());
  std::vector<int32_t>& ids = encoding.ids;
  if (options.add_special) ids = prefix_ids_;
  const SpecialTokens specials =
      options.parse_special ? SpecialTokens::kAsTokens : SpecialTokens::kAsText;
  for (const auto& part : added_tokens_.Find(text, specials)) {
    if (part.id != kNoToken) {
      ids.push_back(part.id);
      continue;
    }
    const std::string_view stretch = text.substr(part.begin, part.end - part.begin);
    KVICK_ASSIGN_OR_RETURN(NormalizedText normalized,
                           normalizer_.Normalize(stretch, encoding.work));
    KVICK_RETURN_IF_ERROR(encoding.Spend(normalized.text.size()));
    const bool at_start = part.begin == 0 && normalized.keeps_start;
    for (const auto& inner : normalized_added_tokens_.Find(normalized.text, specials)) {
      if (inner.id != kNoToken) {
        ids.push_back(inner.id);
        continue;
      }
      const std::string_view rest =
          std::string_view(normalized.text).substr(inner.begin, inner.end - inner.begin);
      KVICK_RETURN_IF_ERROR(EncodeStretch(rest, at_start && inner.begin == 0, encoding));
    }
  }
  if (options.add_special) ids.insert(ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  return std::move(ids);
}

Status Tokenizer::EncodeStretch(std::string_view stretch, bool at_start, Encoding& encoding) const {
  PreTokenizer::Pieces pieces{std::string(stretch), {{0, stretch.size()}}, at_start};
  KVICK_RETURN_IF_ERROR(pretokenizer_.Split(pieces, encoding.work));
  KVICK_RETURN_IF_ERROR(encoding.Spend(pieces.text.size()));
  for (const TextSpan& span : pieces.spans) {
    EncodePiece(std::string_view(pieces.text).substr(span.begin, span.end - span.begin), encoding);
  }
  return {};
}

void Tokenizer::EncodePiece(std::string_view piece, Encoding& encoding) const {
  while (!piece.empty()) {
    const std::string_view word =
        piece.substr(0, cuts_at_markers_ ? WordLength(piece) : piece.size());
    std::visit(
        [&](const auto& encoder) {
          encoder.Encode(vocabulary_, word, encoding.scratch, encoding.ids);
        },
        encoder_);
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
    const std::string& spelling = tokenizer_.Spelling(id);
    RegexWork work(spelling.size());
    if (Result<std::string> first = decoder.TokenBytes(spelling, /*is_first=*/true, work)) {
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
