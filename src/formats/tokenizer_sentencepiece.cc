#include "formats/tokenizer_sentencepiece.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory.h"
#include "base/seeded_hash.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/lfs_pointer.h"
#include "formats/piece_spelling.h"
#include "formats/quoted.h"
#include "formats/tokenizer_hf.h"
#include "formats/tokenizer_hf_config.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

using nlohmann::json;
using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;

constexpr const char* kAddedTokensKey = "added_tokens_decoder";
constexpr size_t kNumNamedPieces = 3;  // the first: unknown, BOS and EOS, or padding, EOS and BOS

enum class Family { kLlama, kGemma };

Result<Family> ReadFamily(const json& config) {
  KVICK_ASSIGN_OR_RETURN(std::string name, JsonMembers(config).String("tokenizer_class"));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (name == "LlamaTokenizer" || name == "CodeLlamaTokenizer") return Family::kLlama;
  if (name == "GemmaTokenizer") return Family::kGemma;
  return Fail(ErrorCode::kUnsupported,
              "tokenizer_class: expected LlamaTokenizer, CodeLlamaTokenizer or GemmaTokenizer, got "
              "{}",
              Quoted(name));
}

void SetDefault(json& object, const char* key, const char* value) {
  if (!object.contains(key)) object[key] = value;
}

void SetDefaultTokens(Family family, json& config) {
  const bool is_gemma = family == Family::kGemma;
  SetDefault(config, "unk_token", "<unk>");
  SetDefault(config, "bos_token", is_gemma ? "<bos>" : "<s>");
  SetDefault(config, "eos_token", is_gemma ? "<eos>" : "</s>");
  if (is_gemma) SetDefault(config, "pad_token", "<pad>");
}

Status CheckPieces(const SentencePieceModel& model) {
  if (model.pieces.size() < kNumNamedPieces) {
    return Fail(ErrorCode::kCorrupt, "expected at least {} pieces, got {}", kNumNamedPieces,
                model.pieces.size());
  }
  if (!model.precompiled_charsmap.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "normalizer_spec.precompiled_charsmap: expected none for this tokenizer_class, got "
                "{} bytes",
                model.precompiled_charsmap.size());
  }
  std::unordered_set<std::string_view, SeededHasher> known;
  for (const Piece& piece : model.pieces) {
    if (known.insert(piece.text).second) continue;
    return Fail(ErrorCode::kCorrupt, "expected one piece {}, got two", Quoted(piece.text));
  }
  return {};
}

// Old Gemma files have no piece for a tab: the byte's becomes it.
void GiveGemmaATab(std::vector<Piece>& pieces) {
  const auto find = [&](std::string_view text) {
    return std::ranges::find(pieces, text, &Piece::text);
  };
  const auto byte = find("<0x09>");
  if (find("\t") == pieces.end() && byte != pieces.end()) *byte = {"\t", 0, PieceType::kNormal};
}

json Replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

// The chains of steps around the model.
json Steps(Family family, const json& config) {
  json decoders = {Replace(kSpaceMarker, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  const json replace = Replace(" ", kSpaceMarker);
  if (family == Family::kGemma) {
    return {{"normalizer", replace},
            {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}}};
  }
  const bool adds_space = config["add_prefix_space"];
  json steps = json::object();
  if (config["legacy"]) {
    json normalizers = json::array();
    if (adds_space) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMarker}});
    normalizers.push_back(replace);
    steps["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  } else {
    steps["pre_tokenizer"] = {{"type", "Metaspace"},
                              {"replacement", kSpaceMarker},
                              {"prepend_scheme", adds_space ? "first" : "never"},
                              {"add_prefix_space", adds_space},
                              {"split", false}};
  }
  if (adds_space) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}});
  steps["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  return steps;
}

json AddedTokens(Family family, const std::vector<Piece>& pieces) {
  json tokens = json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const auto& [text, score, type] = pieces[id];
    if (type != PieceType::kControl && type != PieceType::kUserDefined) continue;
    const bool ends_turn =
        family == Family::kGemma && (text == "<start_of_turn>" || text == "<end_of_turn>");
    tokens.push_back({{"id", id},
                      {"content", text},
                      {"special", type == PieceType::kControl || ends_turn},
                      {"normalized", false}});
  }
  return tokens;
}

json Model(const SentencePieceModel& model) {
  json vocabulary;
  if (model.kind == SentencePieceModel::Kind::kUnigram) {
    for (const Piece& piece : model.pieces) {
      vocabulary.push_back(json::array({piece.text, double{piece.score}}));
    }
    return {{"type", "Unigram"},
            {"unk_id", model.unknown_id},
            {"vocab", std::move(vocabulary)},
            {"byte_fallback", true}};
  }
  for (size_t id = 0; id < model.pieces.size(); ++id) vocabulary[model.pieces[id].text] = id;
  json merges = json::array();
  for (const MergeRule& merge : SentencePieceMerges(model.pieces)) {
    merges.push_back(json::array({merge.left, merge.right}));
  }
  return {{"type", "BPE"},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)},
          {"unk_token", model.unknown_piece},
          {"fuse_unk", true},
          {"byte_fallback", true}};
}

// tokenizer_config.json, or, for one without added_tokens_decoder, with the tokens of the two
// older files.
Result<json> ReadConfig(const std::filesystem::path& folder) {
  const auto read = [&](const char* name) -> Result<json> {
    std::error_code ignored;
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path, ignored)) return json::object();
    return ReadJsonObject(path.string());
  };
  KVICK_ASSIGN_OR_RETURN(json config, read("tokenizer_config.json"));
  if (config.contains(kAddedTokensKey)) return config;
  KVICK_ASSIGN_OR_RETURN(const json named, read("special_tokens_map.json"));
  for (const auto& [key, value] : named.items()) config[key] = value;
  KVICK_ASSIGN_OR_RETURN(const json added, read("added_tokens.json"));
  KVICK_ASSIGN_OR_RETURN(const std::vector<AddedToken> special,
                         ReadHfNamedTokens(JsonMembers(config)));
  std::unordered_set<std::string_view, SeededHasher> special_contents;
  for (const AddedToken& token : special) special_contents.insert(token.content);
  json tokens = json::object();
  for (const auto& [content, value] : added.items()) {
    const std::string label = fmt::format("added_tokens.json: the id of {}", Quoted(content));
    KVICK_ASSIGN_OR_RETURN(const int64_t id, JsonInt(value, label, IntRange{}));
    tokens[std::to_string(id)] = {{"content", content},
                                  {"special", special_contents.contains(content)}};
  }
  config[kAddedTokensKey] = std::move(tokens);
  return config;
}

}  // namespace

std::vector<MergeRule> SentencePieceMerges(const std::vector<Piece>& pieces) {
  struct Merge {
    MergeRule rule;
    float score;
    size_t left_id, right_id, num_left, num_right;  // of characters
  };
  std::unordered_map<std::string_view, size_t, SeededHasher> ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id].text, id);
  std::vector<Merge> merges;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view text = pieces[id].text;
    const float score = id < kNumNamedPieces ? 0 : pieces[id].score;
    const auto first = static_cast<ptrdiff_t>(merges.size());
    const auto num_characters =
        static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
    size_t num_left = 0;
    for (size_t split = CharacterBytes(text); split < text.size();
         split += CharacterBytes(text.substr(split))) {
      ++num_left;
      const auto left = ids.find(text.substr(0, split)), right = ids.find(text.substr(split));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({{std::string(left->first), std::string(right->first)},
                        score,
                        left->second,
                        right->second,
                        num_left,
                        num_characters - num_left});
    }
    std::sort(merges.begin() + first, merges.end(), [](const Merge& a, const Merge& b) {
      return std::tie(a.left_id, a.right_id) < std::tie(b.left_id, b.right_id);
    });
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tie(a.score, a.num_left, a.num_right) > std::tie(b.score, b.num_left, b.num_right);
  });
  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  for (Merge& merge : merges) rules.push_back(std::move(merge.rule));
  return rules;
}

Result<Tokenizer> TokenizerFromSentencePieceModel(SentencePieceModel model, json config) {
  SetDefault(config, "tokenizer_class", "LlamaTokenizer");
  KVICK_ASSIGN_OR_RETURN(const Family family, ReadFamily(config));
  KVICK_RETURN_IF_ERROR(CheckPieces(model));
  SetDefaultTokens(family, config);
  for (const char* key : {"legacy", "add_prefix_space"}) {
    KVICK_ASSIGN_OR_RETURN(config[key], JsonMembers(config).BoolOr(key, true));
  }
  if (family == Family::kGemma) GiveGemmaATab(model.pieces);
  json tokenizer = Steps(family, config);
  tokenizer["added_tokens"] = AddedTokens(family, model.pieces);
  tokenizer["model"] = Model(model);
  return TokenizerFromHfJson(tokenizer, config);
}

Result<Tokenizer> TokenizerFromSentencePiece(const std::string& folder) {
  const std::string path = std::filesystem::path(folder) / "tokenizer.model";
  KVICK_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::span bytes(file.data(), static_cast<size_t>(file.size_bytes()));
  KVICK_RETURN_IF_ERROR(CheckNoLfsPointer(bytes, path));
  KVICK_ASSIGN_OR_RETURN(SentencePieceModel model, SentencePieceModel::Parse(bytes, path));
  KVICK_ASSIGN_OR_RETURN(json config, ReadConfig(folder));
  return TokenizerFromSentencePieceModel(std::move(model), std::move(config))
      .map_error(WithSource(path));
}

}  // namespace kvick
