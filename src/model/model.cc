#include "kvick/model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_hf.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

// nullopt where the model has none.
Result<std::optional<Tokenizer>> TokenizerOf(const ModelFile& file) {
  if (file.gguf() != nullptr) {
    Result<Tokenizer> tokenizer = TokenizerFromGguf(*file.gguf());
    if (!tokenizer && tokenizer.error().code == ErrorCode::kNotFound) return std::nullopt;
    return tokenizer;
  }
  const HfFolder& folder = *file.hf_folder();
  if (!folder.tokenizer_path()) return std::nullopt;
  return TokenizerFromHf(*folder.tokenizer_path(), folder.tokenizer_config_path());
}

ModelInfo InfoOf(const ModelFile& file, const std::optional<Tokenizer>& tokenizer) {
  const LlamaConfig& config = file.config();
  ModelInfo info;
  info.architecture = config.architecture;
  info.name = config.name;
  info.num_layers = config.num_layers;
  info.hidden_size = config.hidden_size;
  info.intermediate_size = config.intermediate_size;
  info.num_heads = config.num_heads;
  info.num_kv_heads = config.num_kv_heads;
  info.head_dim = config.head_dim;
  info.vocab_size = config.vocab_size;
  info.max_positions = config.max_positions;
  info.weight_dtype = file.weights().layers.front().q.dtype;
  info.bos_id = config.bos_id;
  info.eos_ids = config.eos_ids;
  if (tokenizer) {
    if (!info.bos_id) info.bos_id = tokenizer->bos_id();
    info.eos_ids.insert(info.eos_ids.end(), tokenizer->eos_ids().begin(),
                        tokenizer->eos_ids().end());
  }
  std::sort(info.eos_ids.begin(), info.eos_ids.end());
  info.eos_ids.erase(std::unique(info.eos_ids.begin(), info.eos_ids.end()), info.eos_ids.end());
  return info;
}

tl::unexpected<Error> NoTokenizer() {
  return Fail(ErrorCode::kNotFound, "the model has no tokenizer: give and take token ids");
}

}  // namespace

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
  return Complete(std::make_unique<Parts>(Parts{std::move(file), {}, {}}));
}

Result<std::unique_ptr<Model>> Model::Parse(std::span<const std::byte> gguf,
                                            const std::string& source) {
  KVICK_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Parse(gguf, source));
  return Complete(std::make_unique<Parts>(Parts{std::move(file), {}, {}}));
}

Result<std::unique_ptr<Model>> Model::Complete(std::unique_ptr<Parts> parts) {
  KVICK_ASSIGN_OR_RETURN(parts->tokenizer, TokenizerOf(parts->file));
  parts->info = InfoOf(parts->file, parts->tokenizer);
  return std::unique_ptr<Model>(new Model(std::move(parts)));
}

const ModelInfo& Model::info() const { return parts_->info; }
bool Model::has_tokenizer() const { return parts_->tokenizer.has_value(); }

Result<std::vector<int32_t>> Model::Encode(std::string_view text,
                                           const TextOptions& options) const {
  if (!parts_->tokenizer) return NoTokenizer();
  return parts_->tokenizer->Encode(
      text, {.add_special = options.add_special, .parse_special = options.parse_special});
}

Result<std::string> Model::Decode(std::span<const int32_t> ids) const {
  if (!parts_->tokenizer) return NoTokenizer();
  return parts_->tokenizer->Decode(ids);
}

}  // namespace kvick
