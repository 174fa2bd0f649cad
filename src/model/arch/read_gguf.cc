#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/quoted.h"
#include "model/arch/read_spec.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

std::string Label(const GgufFile& file, std::string_view key) {
  return fmt::format("{}: {}", file.source(), key);
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

Result<const Architecture*> ArchitectureOf(const GgufFile& file) {
  constexpr std::string_view kKey = "general.architecture";
  KVICK_ASSIGN_OR_RETURN(const auto name, file.GetString(kKey));
  if (const Architecture* found = FindGgufArchitecture(name)) return found;
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", Label(file, kKey),
              ArchitectureNames(&Architecture::gguf_name), Quoted(name));
}

Status CheckCausal(const ConfigFields& fields) {
  constexpr FieldName kCausal{.gguf = "attention.causal", .hf = {}};
  KVICK_ASSIGN_OR_RETURN(const bool is_causal, fields.BoolOr(kCausal, true));
  if (is_causal) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected true, got false", fields.Label(kCausal));
}

// The length of the token list, that in ARCHITECTURE.vocab_size and the rows of the embedding, as
// far as they are there, must be one number.
Status ReadVocabSize(const ConfigFields& fields, ModelSpec& spec) {
  const GgufFile& file = *fields.gguf();
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
  const std::string size_key = fmt::format("{}.vocab_size", spec.architecture);
  KVICK_ASSIGN_OR_RETURN(const auto stated, file.FindInt(size_key));
  if (stated) claims.push_back({size_key, *stated});
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
  spec.vocab_size = claims.front().size;
  return CheckRange(Label(file, claims.front().place), spec.vocab_size, kVocabRange);
}

Status ReadTokenIds(const GgufFile& file, ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(spec.bos_id,
                         file.FindTokenId("tokenizer.ggml.bos_token_id", spec.vocab_size));
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    KVICK_ASSIGN_OR_RETURN(const auto id, file.FindTokenId(key, spec.vocab_size));
    const bool is_known =
        id && std::find(spec.eos_ids.begin(), spec.eos_ids.end(), *id) != spec.eos_ids.end();
    if (id && !is_known) spec.eos_ids.push_back(*id);
  }
  return {};
}

}  // namespace

Result<ModelSpec> ModelSpecFromGguf(const GgufFile& file) {
  KVICK_RETURN_IF_ERROR(CheckNotSplit(file));
  KVICK_ASSIGN_OR_RETURN(const Architecture* architecture, ArchitectureOf(file));
  const ConfigFields fields(file, architecture->gguf_name);
  KVICK_RETURN_IF_ERROR(CheckCausal(fields));
  ModelSpec spec;
  spec.architecture = architecture->gguf_name;
  KVICK_ASSIGN_OR_RETURN(const auto name, file.FindString("general.name"));
  spec.name = name.value_or("");
  KVICK_RETURN_IF_ERROR(ReadSizes(fields, *architecture, spec));
  KVICK_RETURN_IF_ERROR(ReadVocabSize(fields, spec));
  spec.tie_word_embeddings = file.tensors().Find("output.weight") == nullptr;
  KVICK_RETURN_IF_ERROR(DescribeLayers(fields, *architecture, spec));
  KVICK_RETURN_IF_ERROR(ReadTokenIds(file, spec));
  return spec;
}

}  // namespace kvick
