#include "kvick/model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "formats/open_tokenizer.h"
#include "formats/tokenizer_gguf.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

Result<Tokenizer> TokenizerOf(const ModelFile& file) {
  if (file.gguf() != nullptr) return TokenizerFromGguf(*file.gguf());
  return OpenTokenizer(file.hf_folder()->path());
}

ModelInfo InfoOf(const ModelFile& file, const Result<Tokenizer>& tokenizer) {
  const ModelSpec& spec = file.spec();
  ModelInfo info;
  info.architecture = spec.architecture;
  info.name = spec.name;
  info.num_layers = spec.num_layers();
  info.hidden_size = spec.hidden_size;
  info.intermediate_size = spec.intermediate_size;
  info.num_heads = spec.num_heads;
  info.num_kv_heads = spec.num_kv_heads;
  info.head_dim = spec.head_dim;
  info.vocab_size = spec.vocab_size;
  info.max_positions = spec.max_positions;
  info.rope_switch_length = spec.RopeSwitchLength();
  info.windows = spec.Windows();
  info.weight_format = std::string(FormatOf(file.weights().layers.front().q.type).name);
  info.bos_id = spec.bos_id;
  info.eos_ids = spec.eos_ids;
  if (tokenizer) {
    if (!info.bos_id) info.bos_id = tokenizer->bos_id();
    info.eos_ids.insert(info.eos_ids.end(), tokenizer->eos_ids().begin(),
                        tokenizer->eos_ids().end());
  }
  // A tokenizer may name tokens that the model does not have: they never come.
  const auto is_unknown = [&](int32_t id) { return id >= info.vocab_size; };
  if (info.bos_id && is_unknown(*info.bos_id)) info.bos_id.reset();
  std::erase_if(info.eos_ids, is_unknown);
  std::sort(info.eos_ids.begin(), info.eos_ids.end());
  info.eos_ids.erase(std::unique(info.eos_ids.begin(), info.eos_ids.end()), info.eos_ids.end());
  return info;
}

std::unique_ptr<Model::Parts> PartsOf(ModelFile file) {
  Result<Tokenizer> tokenizer = TokenizerOf(file);
  ModelInfo info = InfoOf(file, tokenizer);
  return std::make_unique<Model::Parts>(
      Model::Parts{std::move(file), std::move(tokenizer), std::move(info)});
}

}  // namespace

DType ModelInfo::DefaultKvDType() const {
  const WeightFormat* format = FindWeightFormat(weight_format);
  return format != nullptr ? format->dtype.value_or(DType::kBF16) : DType::kBF16;
}

KvConfig ModelInfo::KvGeometry(DType dtype) const {
  KvConfig config;
  config.num_layers = num_layers;
  config.num_kv_heads = num_kv_heads;
  config.head_dim = head_dim;
  config.dtype = dtype;
  return config;
}

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::Open(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(path));
  return std::unique_ptr<Model>(new Model(PartsOf(std::move(file))));
}

Result<std::unique_ptr<Model>> Model::Parse(std::span<const std::byte> gguf,
                                            const std::string& source) {
  KVICK_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Parse(gguf, source));
  return std::unique_ptr<Model>(new Model(PartsOf(std::move(file))));
}

const ModelInfo& Model::info() const { return parts_->info; }
bool Model::has_tokenizer() const { return parts_->tokenizer.has_value(); }

Status Model::tokenizer_status() const {
  if (parts_->tokenizer) return {};
  return tl::unexpected<Error>(parts_->tokenizer.error());
}

Result<std::vector<int32_t>> Model::Encode(std::string_view text,
                                           const TextOptions& options) const {
  KVICK_RETURN_IF_ERROR(tokenizer_status());
  return parts_->tokenizer->Encode(
      text, {.add_special = options.add_special, .parse_special = options.parse_special});
}

Result<std::string> Model::Decode(std::span<const int32_t> ids) const {
  KVICK_RETURN_IF_ERROR(tokenizer_status());
  return parts_->tokenizer->Decode(ids);
}

}  // namespace kvick
