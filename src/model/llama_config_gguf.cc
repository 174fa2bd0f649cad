#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/gguf.h"
#include "formats/quoted.h"
#include "model/llama_config.h"
#include "model/llama_config_checks.h"

namespace kvick {
namespace {

std::string Label(const GgufFile& file, std::string_view key) {
  return fmt::format("{}: {}", file.source(), key);
}

Result<int64_t> Int(const GgufFile& file, std::string_view key, IntRange range) {
  KVICK_ASSIGN_OR_RETURN(const int64_t value, file.GetInt(key));
  KVICK_RETURN_IF_ERROR(CheckRange(Label(file, key), value, range));
  return value;
}

Result<int64_t> IntOr(const GgufFile& file, std::string_view key, IntRange range,
                      int64_t fallback) {
  if (file.Find(key) == nullptr) return fallback;
  return Int(file, key, range);
}

Result<double> FloatOr(const GgufFile& file, std::string_view key, FloatRange range,
                       double fallback) {
  if (file.Find(key) == nullptr) return fallback;
  KVICK_ASSIGN_OR_RETURN(const double value, file.GetFloat(key));
  KVICK_RETURN_IF_ERROR(CheckRange(Label(file, key), value, range));
  return value;
}

// For numbers that ask for more than kvick does.
Status CheckAtMost(const GgufFile& file, std::string_view key, int64_t most) {
  KVICK_ASSIGN_OR_RETURN(const auto value, file.FindInt(key));
  if (!value || *value <= most) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected at most {}, got {}", Label(file, key), most,
              *value);
}

// One file of several: its tensors are some of the model's, and only the first has the metadata.
Status CheckNotSplit(const GgufFile& file) {
  KVICK_ASSIGN_OR_RETURN(const auto count, file.FindInt("split.count"));
  if (count.value_or(1) <= file.num_parts()) return {};
  KVICK_ASSIGN_OR_RETURN(const auto index, file.FindInt("split.no"));
  return Fail(ErrorCode::kUnsupported,
              "{}: expected a whole model, got part {} of {}: merge the parts with llama.cpp's "
              "gguf-split --merge",
              file.source(), static_cast<uint64_t>(index.value_or(0)) + 1, *count);
}

// Refuses what would change the numbers in a way that kvick does not know.
Status CheckSupported(const GgufFile& file) {
  KVICK_RETURN_IF_ERROR(CheckNotSplit(file));
  KVICK_ASSIGN_OR_RETURN(const auto architecture, file.GetString("general.architecture"));
  if (architecture != "llama") {
    return Fail(ErrorCode::kUnsupported, "{}: expected \"llama\", got {}",
                Label(file, "general.architecture"), Quoted(architecture));
  }
  KVICK_RETURN_IF_ERROR(CheckAtMost(file, "llama.expert_count", 0));
  KVICK_ASSIGN_OR_RETURN(const auto is_causal, file.FindBool("llama.attention.causal"));
  if (!is_causal.value_or(true)) {
    return Fail(ErrorCode::kUnsupported, "{}: expected true, got false",
                Label(file, "llama.attention.causal"));
  }
  return {};
}

// A window as long as the context hides nothing from anybody; 0 is none.
Status CheckWindow(const GgufFile& file, int64_t max_positions) {
  constexpr std::string_view kKey = "llama.attention.sliding_window";
  KVICK_ASSIGN_OR_RETURN(const int64_t window, IntOr(file, kKey, {.min = 0}, 0));
  if (window == 0 || window >= max_positions) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected at least {} (all positions), got {}",
              Label(file, kKey), max_positions, window);
}

Status ReadHeadDim(const GgufFile& file, LlamaConfig& config) {
  constexpr std::string_view kKey = "llama.attention.key_length";
  KVICK_ASSIGN_OR_RETURN(config.head_dim, IntOr(file, kKey, kHeadDimRange, 0));
  KVICK_RETURN_IF_ERROR(CheckHeads({"llama.embedding_length", "llama.attention.head_count",
                                    "llama.attention.head_count_kv", kKey},
                                   config)
                            .map_error(WithSource(file.source())));
  for (const std::string_view key :
       {"llama.attention.value_length", "llama.rope.dimension_count"}) {
    KVICK_ASSIGN_OR_RETURN(const auto value, file.FindInt(key));
    if (value && *value != config.head_dim) {
      return Fail(ErrorCode::kUnsupported, "{}: expected the length of a key ({}), got {}",
                  Label(file, key), config.head_dim, *value);
    }
  }
  return {};
}

// The length of the token list, the number in llama.vocab_size and the rows of the embedding, as
// far as they are there, must be one number.
Status ReadVocabSize(const GgufFile& file, LlamaConfig& config) {
  struct Claim {
    std::string_view place;
    int64_t size;
  };
  std::vector<Claim> claims;
  if (const GgufValue* tokens = file.Find("tokenizer.ggml.tokens")) {
    if (tokens->type != GgufType::kArray) {
      return Fail(ErrorCode::kCorrupt, "{}: expected an array of strings, got a {}",
                  Label(file, "tokenizer.ggml.tokens"), GgufTypeName(tokens->type));
    }
    claims.push_back({"the length of tokenizer.ggml.tokens", tokens->num_elements});
  }
  KVICK_ASSIGN_OR_RETURN(const auto stated, file.FindInt("llama.vocab_size"));
  if (stated) claims.push_back({"llama.vocab_size", *stated});
  const TensorInfo* embedding = file.tensors().Find("token_embd.weight");
  if (embedding != nullptr) {
    claims.push_back({"the number of rows of token_embd.weight", embedding->shape.front()});
  }
  if (claims.empty()) {
    return Fail(ErrorCode::kCorrupt, "{} is missing", Label(file, "tokenizer.ggml.tokens"));
  }
  for (const Claim& claim : claims) {
    if (claim.size != claims.front().size) {
      return Fail(ErrorCode::kCorrupt, "{}: {}: expected {}, as {}, got {}", file.source(),
                  claim.place, claims.front().size, claims.front().place, claim.size);
    }
  }
  config.vocab_size = claims.front().size;
  return CheckRange(Label(file, claims.front().place), config.vocab_size, kVocabRange);
}

Status ReadSizes(const GgufFile& file, LlamaConfig& config) {
  KVICK_ASSIGN_OR_RETURN(config.num_layers, Int(file, "llama.block_count", kLayersRange));
  KVICK_ASSIGN_OR_RETURN(config.hidden_size, Int(file, "llama.embedding_length", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.intermediate_size,
                         Int(file, "llama.feed_forward_length", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.num_heads, Int(file, "llama.attention.head_count", kHeadsRange));
  KVICK_ASSIGN_OR_RETURN(config.num_kv_heads, IntOr(file, "llama.attention.head_count_kv",
                                                    kHeadsRange, config.num_heads));
  KVICK_ASSIGN_OR_RETURN(config.max_positions, Int(file, "llama.context_length", kPositionsRange));
  KVICK_RETURN_IF_ERROR(CheckWindow(file, config.max_positions));
  KVICK_RETURN_IF_ERROR(ReadHeadDim(file, config));
  return ReadVocabSize(file, config);
}

// As llama.cpp: no type means linear, which without a factor is none; type none overrides a factor.
Status ReadRopeScaling(const GgufFile& file, RopeConfig& rope) {
  constexpr std::string_view kTypeKey = "llama.rope.scaling.type";
  KVICK_ASSIGN_OR_RETURN(const auto type, file.FindString(kTypeKey));
  const std::string_view kind = type.value_or("linear");
  if (kind != "none" && kind != "linear") {
    return Fail(ErrorCode::kUnsupported, "{}: expected \"none\" or \"linear\", got {}",
                Label(file, kTypeKey), Quoted(kind));
  }
  KVICK_ASSIGN_OR_RETURN(const double attention_factor,
                         FloatOr(file, "llama.rope.scaling.attn_factor", kFactorRange, 1.0));
  if (attention_factor != 1.0) {
    return Fail(ErrorCode::kUnsupported, "{}: expected 1, got {}",
                Label(file, "llama.rope.scaling.attn_factor"), attention_factor);
  }
  KVICK_ASSIGN_OR_RETURN(const double legacy_factor,
                         FloatOr(file, "llama.rope.scale_linear", kFactorRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(const double factor,
                         FloatOr(file, "llama.rope.scaling.factor", kFactorRange, legacy_factor));
  if (kind == "none" || factor == 1.0) return {};
  rope.scaling = RopeConfig::Scaling::kLinear;
  rope.factor = factor;
  return {};
}

// What llama.cpp's converter makes of llama3 scaling: one divisor for each pair.
Status ReadFreqFactors(const GgufFile& file, int64_t num_pairs, RopeConfig& rope) {
  const TensorInfo* tensor = file.tensors().Find("rope_freqs.weight");
  if (tensor == nullptr) return {};
  if (tensor->format != &FormatOf(WeightType::kF32) ||
      tensor->shape != std::vector<int64_t>{num_pairs}) {
    return Fail(ErrorCode::kCorrupt, "{}: expected F32 [{}], got {} {}",
                Label(file, "rope_freqs.weight"), num_pairs, tensor->type_name,
                ShapeText(tensor->shape));
  }
  rope.freq_factors.resize(static_cast<size_t>(num_pairs));
  std::memcpy(rope.freq_factors.data(), tensor->data, static_cast<size_t>(tensor->num_bytes));
  for (const float factor : rope.freq_factors) {
    KVICK_RETURN_IF_ERROR(
        CheckRange(Label(file, "an element of rope_freqs.weight"), factor, kFactorRange));
  }
  return {};
}

Result<RopeConfig> ReadRope(const GgufFile& file, int64_t head_dim) {
  RopeConfig rope;
  rope.pairs = RopePairs::kInterleaved;
  KVICK_ASSIGN_OR_RETURN(rope.theta,
                         FloatOr(file, "llama.rope.freq_base", kThetaRange, rope.theta));
  KVICK_RETURN_IF_ERROR(ReadRopeScaling(file, rope));
  KVICK_RETURN_IF_ERROR(ReadFreqFactors(file, head_dim / 2, rope));
  return rope;
}

Status ReadTokenIds(const GgufFile& file, LlamaConfig& config) {
  KVICK_ASSIGN_OR_RETURN(config.bos_id,
                         file.FindTokenId("tokenizer.ggml.bos_token_id", config.vocab_size));
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    KVICK_ASSIGN_OR_RETURN(const auto id, file.FindTokenId(key, config.vocab_size));
    const bool is_known =
        id && std::find(config.eos_ids.begin(), config.eos_ids.end(), *id) != config.eos_ids.end();
    if (id && !is_known) config.eos_ids.push_back(*id);
  }
  return {};
}

}  // namespace

Result<LlamaConfig> LlamaConfigFromGguf(const GgufFile& file) {
  KVICK_RETURN_IF_ERROR(CheckSupported(file));
  LlamaConfig config;
  config.architecture = "llama";
  KVICK_ASSIGN_OR_RETURN(const auto name, file.FindString("general.name"));
  config.name = name.value_or("");
  KVICK_RETURN_IF_ERROR(ReadSizes(file, config));
  constexpr std::string_view kEpsKey = "llama.attention.layer_norm_rms_epsilon";
  KVICK_ASSIGN_OR_RETURN(config.rms_norm_eps, file.GetFloat(kEpsKey));
  KVICK_RETURN_IF_ERROR(CheckRange(Label(file, kEpsKey), config.rms_norm_eps, kEpsRange));
  KVICK_ASSIGN_OR_RETURN(config.rope, ReadRope(file, config.head_dim));
  config.tie_word_embeddings = file.tensors().Find("output.weight") == nullptr;
  KVICK_RETURN_IF_ERROR(ReadTokenIds(file, config));
  return config;
}

}  // namespace kvick
