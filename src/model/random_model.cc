#include "model/random_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/gguf_value.h"
#include "quant/random_weights.h"

namespace kvick {
namespace {

constexpr int64_t kAlignment = 64;

// What stands before the tensors of a GGUF file.
class Header {
 public:
  template <class T>
  void Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void PutString(std::string_view text) {
    Put(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
  }
  void PutU32(std::string_view key, int64_t value) {
    PutString(key);
    Put(static_cast<uint32_t>(GgufType::kU32));
    Put(static_cast<uint32_t>(value));
  }
  void PutF32(std::string_view key, float value) {
    PutString(key);
    Put(static_cast<uint32_t>(GgufType::kF32));
    Put(value);
  }
  void PutText(std::string_view key, std::string_view value) {
    PutString(key);
    Put(static_cast<uint32_t>(GgufType::kString));
    PutString(value);
  }
  void Pad() { bytes_.resize(static_cast<size_t>(RoundUp(size(), kAlignment))); }

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  const char* data() const { return bytes_.data(); }

 private:
  std::string bytes_;
};

struct Tensor {
  std::string name;
  WeightType type = WeightType::kF32;
  int64_t num_rows = 0;  // 0: a vector
  int64_t num_cols = 0;
  int64_t offset = 0;  // bytes from the first tensor

  int64_t num_elements() const { return std::max<int64_t>(num_rows, 1) * num_cols; }
};

// The weights of a Llama in the order of a file.
std::vector<Tensor> TensorsOf(const ModelSpec& c, WeightType type) {
  std::vector<Tensor> tensors;
  const auto matrix = [&](std::string name, int64_t num_rows, int64_t num_cols) {
    tensors.push_back({std::move(name) + ".weight", type, num_rows, num_cols});
  };
  const auto norm = [&](std::string name) {
    tensors.push_back({std::move(name) + ".weight", WeightType::kF32, 0, c.hidden_size});
  };
  matrix("token_embd", c.vocab_size, c.hidden_size);
  for (int64_t i = 0; i < c.num_layers(); ++i) {
    const std::string layer = fmt::format("blk.{}.", i);
    norm(layer + "attn_norm");
    matrix(layer + "attn_q", c.num_heads * c.head_dim, c.hidden_size);
    matrix(layer + "attn_k", c.num_kv_heads * c.head_dim, c.hidden_size);
    matrix(layer + "attn_v", c.num_kv_heads * c.head_dim, c.hidden_size);
    matrix(layer + "attn_output", c.hidden_size, c.num_heads * c.head_dim);
    norm(layer + "ffn_norm");
    matrix(layer + "ffn_gate", c.intermediate_size, c.hidden_size);
    matrix(layer + "ffn_up", c.intermediate_size, c.hidden_size);
    matrix(layer + "ffn_down", c.hidden_size, c.intermediate_size);
  }
  norm("output_norm");
  if (!c.tie_word_embeddings) matrix("output", c.vocab_size, c.hidden_size);
  return tensors;
}

// Places the tensors one behind the other; returns their bytes in all.
Result<int64_t> Place(std::vector<Tensor>& tensors) {
  constexpr int64_t kMost = MappedRegion::kMaxBytes / 2;  // and room for the header
  int64_t total = 0;
  for (Tensor& tensor : tensors) {
    tensor.offset = total;
    const auto row_bytes = WeightBytes(tensor.type, tensor.num_cols);
    const auto num_bytes =
        CheckedProduct({std::max<int64_t>(tensor.num_rows, 1), row_bytes.value_or(-1)});
    if (!num_bytes || *num_bytes > kMost - kAlignment - total) {
      return Fail(ErrorCode::kCorrupt,
                  "random model: {}: expected a size in memory, got {} x {} {}", tensor.name,
                  tensor.num_rows, tensor.num_cols, FormatOf(tensor.type).name);
    }
    total += RoundUp(*num_bytes, kAlignment);
  }
  return total;
}

// Source  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
Header HeaderOf(const ModelSpec& c, const std::vector<Tensor>& tensors) {
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"general.alignment", kAlignment},
      {"llama.block_count", c.num_layers()},
      {"llama.context_length", c.max_positions},
      {"llama.embedding_length", c.hidden_size},
      {"llama.feed_forward_length", c.intermediate_size},
      {"llama.attention.head_count", c.num_heads},
      {"llama.attention.head_count_kv", c.num_kv_heads},
      {"llama.attention.key_length", c.head_dim},
      {"llama.attention.value_length", c.head_dim},
      {"llama.vocab_size", c.vocab_size}};
  Header header;
  header.Put(std::array{'G', 'G', 'U', 'F'});
  header.Put(uint32_t{3});  // version
  header.Put(static_cast<uint64_t>(tensors.size()));
  header.Put(static_cast<uint64_t>(std::size(numbers) + 2));
  header.PutText("general.architecture", "llama");
  header.PutF32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const auto& [key, value] : numbers) header.PutU32(key, value);
  for (const Tensor& tensor : tensors) {
    header.PutString(tensor.name);
    header.Put(uint32_t{tensor.num_rows > 0 ? 2u : 1u});
    header.Put(static_cast<uint64_t>(tensor.num_cols));  // innermost first
    if (tensor.num_rows > 0) header.Put(static_cast<uint64_t>(tensor.num_rows));
    header.Put(FormatOf(tensor.type).gguf_type);
    header.Put(static_cast<uint64_t>(tensor.offset));
  }
  header.Pad();
  return header;
}

// Norms of 1, and matrices that keep the size of what they multiply.
void Fill(const std::vector<Tensor>& tensors, int num_threads, std::byte* first_tensor) {
  uint32_t seed = 1;
  for (const Tensor& tensor : tensors) {
    std::byte* const data = first_tensor + tensor.offset;
    if (tensor.num_rows == 0) {
      std::fill_n(reinterpret_cast<float*>(data), tensor.num_cols, 1.0f);
      continue;
    }
    RandomWeights{tensor.type, tensor.num_elements(),
                  1 / std::sqrt(static_cast<double>(tensor.num_cols)), seed++, num_threads}
        .WriteTo(data);
  }
}

}  // namespace

Result<RandomModel> RandomModel::Create(const ModelSpec& spec, WeightType type, int num_threads) {
  std::vector<Tensor> tensors = TensorsOf(spec, type);
  KVICK_ASSIGN_OR_RETURN(const int64_t tensor_bytes, Place(tensors));
  const Header header = HeaderOf(spec, tensors);
  const int64_t num_bytes = header.size() + tensor_bytes;
  KVICK_ASSIGN_OR_RETURN(MappedRegion gguf, MappedRegion::Create(num_bytes, Backing::kUpFront));
  std::memcpy(gguf.data(), header.data(), static_cast<size_t>(header.size()));
  Fill(tensors, num_threads, gguf.data() + header.size());
  KVICK_ASSIGN_OR_RETURN(
      auto model, Model::Parse({gguf.data(), static_cast<size_t>(num_bytes)}, "random model"));
  return RandomModel(std::move(gguf), std::move(model));
}

}  // namespace kvick
