#include "formats/tokenizer_gguf.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/gguf_pretokenizers.h"
#include "formats/piece_spelling.h"
#include "formats/quoted.h"
#include "formats/range.h"

namespace kvick {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

Result<const GgufPreTokenizer*> FindPreTokenizer(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(const auto given, file.FindString(kPreKey));
  const std::string_view name = given.value_or("default");
  const GgufPreTokenizer* pre = FindGgufPreTokenizer(name);
  if (!pre) {
    return Fail(ErrorCode::kUnsupported,
                "{}: {}: expected a pre-tokenizer listed in docs/formats.md, got {}", file.source(),
                kPreKey, Quoted(name));
  }
  return pre;
}

std::string Label(const GgufFile& file, std::string_view key) {
  return fmt::format("{}: {}", file.source(), key);
}

Status ReadTypes(const GgufFile& file, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const auto numbers, file.FindIntArray(kTypesKey));
  if (!numbers) {
    data.types.assign(data.pieces.size(), TokenType::kNormal);
    return {};
  }
  constexpr TokenType kTypes[] = {TokenType::kNormal,      TokenType::kUnknown, TokenType::kControl,
                                  TokenType::kUserDefined, TokenType::kUnused,  TokenType::kByte};
  constexpr IntRange kNumbers{1, std::size(kTypes)};
  const std::string label = Label(file, fmt::format("an element of {}", kTypesKey));
  data.types.reserve(numbers->size());
  for (int64_t number : *numbers) {
    KVICK_RETURN_IF_ERROR(CheckRange(label, number, kNumbers));
    data.types.push_back(kTypes[number - 1]);
  }
  return {};
}

// Text may become a user-defined piece by merging, too. Control tokens come from nothing but their
// spelling.
Status ReadPieces(const GgufFile& file, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const auto tokens, file.GetStringArray(kTokensKey));
  data.pieces.assign(tokens.begin(), tokens.end());
  KVICK_RETURN_IF_ERROR(ReadTypes(file, data));
  data.decodes_added_tokens = false;
  for (size_t i = 0; i < std::min(data.pieces.size(), data.types.size()); ++i) {
    const TokenType type = data.types[i];
    const bool is_text = type == TokenType::kUserDefined;
    data.in_model.push_back(type == TokenType::kNormal || is_text);
    if (!is_text && type != TokenType::kControl && type != TokenType::kUnknown) continue;
    AddedToken& token = data.added_tokens.emplace_back();
    token.id = static_cast<int32_t>(i);
    token.content = data.pieces[i];
    token.special = !is_text;
  }
  return {};
}

Result<std::vector<MergeRule>> ReadMerges(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(const auto merges, file.GetStringArray(kMergesKey));
  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  for (std::string_view merge : merges) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return Fail(ErrorCode::kCorrupt,
                  "{}: {}[{}]: expected two pieces with a space between, got {}", file.source(),
                  kMergesKey, rules.size(), Quoted(merge));
    }
    rules.push_back({std::string(merge.substr(0, space)), std::string(merge.substr(space + 1))});
  }
  return rules;
}

Result<std::optional<int32_t>> FindId(const GgufFile& file, std::string_view key,
                                      const TokenizerData& data) {
  return file.FindTokenId(key, static_cast<int64_t>(data.pieces.size()));
}

Status ReadIds(const GgufFile& file, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(data.bos_id, FindId(file, "tokenizer.ggml.bos_token_id", data));
  KVICK_ASSIGN_OR_RETURN(data.eos_id, FindId(file, "tokenizer.ggml.eos_token_id", data));
  KVICK_ASSIGN_OR_RETURN(data.unknown_id, FindId(file, "tokenizer.ggml.unknown_token_id", data));
  for (std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    KVICK_ASSIGN_OR_RETURN(const std::optional<int32_t> id, FindId(file, key, data));
    if (id) data.eos_ids.push_back(*id);
  }
  return {};
}

// Which tokens are put around a text where the file does not say.
struct DefaultSurroundings {
  bool bos, eos;
};

Status ReadSurroundings(const GgufFile& file, DefaultSurroundings defaults, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const auto add_bos, file.FindBool("tokenizer.ggml.add_bos_token"));
  KVICK_ASSIGN_OR_RETURN(const auto add_eos, file.FindBool("tokenizer.ggml.add_eos_token"));
  if (add_bos.value_or(defaults.bos) && data.bos_id) data.prefix_ids = {*data.bos_id};
  if (add_eos.value_or(defaults.eos) && data.eos_id) data.suffix_ids = {*data.eos_id};
  return {};
}

// The usual id of a token, for files that name none.
void SetDefaultId(std::optional<int32_t>& id, size_t value, TokenType type,
                  const TokenizerData& data) {
  if (!id && value < data.types.size() && data.types[value] == type) {
    id = static_cast<int32_t>(value);
  }
}

Result<TokenizerData> SentencePieceFromGguf(const GgufFile& file) {
  TokenizerData data;
  KVICK_RETURN_IF_ERROR(ReadPieces(file, data));
  KVICK_ASSIGN_OR_RETURN(const auto scores, file.GetFloatArray(kScoresKey));
  data.scores.assign(scores.begin(), scores.end());
  KVICK_RETURN_IF_ERROR(ReadIds(file, data));
  SetDefaultId(data.unknown_id, 0, TokenType::kUnknown, data);
  SetDefaultId(data.bos_id, 1, TokenType::kControl, data);
  SetDefaultId(data.eos_id, 2, TokenType::kControl, data);
  KVICK_RETURN_IF_ERROR(ReadSurroundings(file, {.bos = true, .eos = false}, data));
  KVICK_ASSIGN_OR_RETURN(const auto add_space, file.FindBool("tokenizer.ggml.add_space_prefix"));
  const std::string marker(kSpaceMarker);
  KVICK_ASSIGN_OR_RETURN(TextPattern space, TextPattern::FromString(" "));
  KVICK_ASSIGN_OR_RETURN(TextPattern marked, TextPattern::FromString(marker));
  data.normalizer = {ReplaceStep{std::move(space), marker}};
  data.decoder.steps = {ReplaceStep{std::move(marked), " "}, ByteFallbackStep{}};
  if (add_space.value_or(true)) {
    data.normalizer.insert(data.normalizer.begin(), PrependStep{marker});
    data.decoder.strip_content = " ";
    data.decoder.max_start_strips = 1;
  }
  return data;
}

Result<TokenizerData> Gpt2FromGguf(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(const GgufPreTokenizer* pre, FindPreTokenizer(file));
  TokenizerData data;
  data.encoder = EncoderKind::kMergesByRank;
  data.duplicate_merges = DuplicateMerges::kFirstCounts;
  for (const std::string_view pattern : pre->patterns) {
    KVICK_ASSIGN_OR_RETURN(TextPattern regex, TextPattern::FromRegex(pattern));
    data.pretokenizer.push_back(SplitStep{std::move(regex)});
  }
  data.pretokenizer.push_back(ByteLevelStep{});
  data.decoder.steps = {SpelledBytesStep{}};
  data.whole_words_first = pre->whole_words_first;
  KVICK_RETURN_IF_ERROR(ReadPieces(file, data));
  KVICK_ASSIGN_OR_RETURN(data.merges, ReadMerges(file));
  KVICK_RETURN_IF_ERROR(ReadIds(file, data));
  KVICK_RETURN_IF_ERROR(ReadSurroundings(file, {.bos = pre->add_bos, .eos = false}, data));
  return data;
}

// The steps before and behind SentencePiece's Unigram, which are those of its own normalizer.
Status ReadUnigramSteps(const GgufFile& file, TokenizerData& data) {
  constexpr std::string_view kCharsmapKey = "tokenizer.ggml.precompiled_charsmap";
  SentencePieceStep step;
  step.space = kSpaceMarker;
  KVICK_ASSIGN_OR_RETURN(const auto bytes, file.FindIntArray(kCharsmapKey));
  if (bytes && !bytes->empty()) {
    std::string text;
    for (const int64_t byte : *bytes) text += static_cast<char>(byte);
    KVICK_ASSIGN_OR_RETURN(Charsmap charsmap,
                           Charsmap::Parse(text).map_error(WithSource(file.source())));
    step.charsmap = std::make_shared<const Charsmap>(std::move(charsmap));
  }
  KVICK_ASSIGN_OR_RETURN(const auto merges,
                         file.FindBool("tokenizer.ggml.remove_extra_whitespaces"));
  KVICK_ASSIGN_OR_RETURN(const auto adds, file.FindBool("tokenizer.ggml.add_space_prefix"));
  step.merges_spaces = merges.value_or(false);
  step.adds_space = adds.value_or(false);
  data.normalizer = {std::move(step)};
  KVICK_ASSIGN_OR_RETURN(TextPattern marked, TextPattern::FromString(std::string(kSpaceMarker)));
  data.decoder.steps = {ReplaceStep{std::move(marked), " "}, ByteFallbackStep{}};
  if (adds.value_or(false)) {
    data.decoder.strip_content = " ";
    data.decoder.max_start_strips = 1;
  }
  return {};
}

// Scores as llama.cpp has them: those of user-defined pieces are 0, and unused pieces count too.
Status ReadUnigramScores(const GgufFile& file, TokenizerData& data) {
  constexpr float kUnknownPenalty = 10;
  KVICK_ASSIGN_OR_RETURN(const auto scores, file.GetFloatArray(kScoresKey));
  data.scores.assign(scores.begin(), scores.end());
  float min_score = std::numeric_limits<float>::max();
  for (size_t i = 0; i < std::min(scores.size(), data.in_model.size()); ++i) {
    if (data.types[i] == TokenType::kNormal) min_score = std::min(min_score, scores[i]);
    if (data.types[i] == TokenType::kUserDefined) data.scores[i] = 0;
    if (data.types[i] == TokenType::kUnused) data.in_model[i] = true;
  }
  data.unknown_score = min_score - kUnknownPenalty;
  return {};
}

Result<TokenizerData> UnigramFromGguf(const GgufFile& file) {
  TokenizerData data;
  data.encoder = EncoderKind::kUnigram;
  KVICK_RETURN_IF_ERROR(ReadPieces(file, data));
  KVICK_RETURN_IF_ERROR(ReadUnigramScores(file, data));
  KVICK_RETURN_IF_ERROR(ReadIds(file, data));
  SetDefaultId(data.eos_id, 1, TokenType::kControl, data);
  SetDefaultId(data.unknown_id, 2, TokenType::kUnknown, data);
  KVICK_RETURN_IF_ERROR(ReadUnigramSteps(file, data));
  KVICK_RETURN_IF_ERROR(ReadSurroundings(file, {.bos = false, .eos = true}, data));
  return data;
}

Result<TokenizerData> ReadTokenizerData(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(const auto model, file.FindString(kModelKey));
  if (model == "llama") return SentencePieceFromGguf(file);
  if (model == "gpt2") return Gpt2FromGguf(file);
  if (model == "t5") return UnigramFromGguf(file);
  if (!model || model == "none") {
    return Fail(ErrorCode::kNotFound, "{}: the file has no tokenizer", file.source());
  }
  return Fail(ErrorCode::kUnsupported, "{}: {}: expected \"llama\", \"gpt2\" or \"t5\", got {}",
              file.source(), kModelKey, Quoted(*model));
}

}  // namespace

Result<Tokenizer> TokenizerFromGguf(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(TokenizerData data, ReadTokenizerData(file));
  return Tokenizer::Create(std::move(data)).map_error(WithSource(file.source()));
}

}  // namespace kvick
