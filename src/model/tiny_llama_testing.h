#ifndef KVICK_MODEL_TINY_LLAMA_TESTING_H_
#define KVICK_MODEL_TINY_LLAMA_TESTING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/files_testing.h"
#include "formats/gguf_testing.h"
#include "formats/safetensors_testing.h"

// The smallest whole model, in both formats, for tests and fuzzers: 2 layers, hidden size 16,
// intermediate size 24, 2 query heads of 8 on 1 KV head, 5 tokens, tied embeddings. All weights 0.
namespace kvick::testing {

inline const std::vector<std::pair<const char*, std::vector<int64_t>>>& TinyLayerShapes() {
  static const std::vector<std::pair<const char*, std::vector<int64_t>>> shapes = {
      {"attn_norm", {16}},    {"attn_q", {16, 16}},      {"attn_k", {8, 16}},
      {"attn_v", {8, 16}},    {"attn_output", {16, 16}}, {"ffn_norm", {16}},
      {"ffn_gate", {24, 16}}, {"ffn_up", {24, 16}},      {"ffn_down", {16, 24}}};
  return shapes;
}

inline GgufSpec TinyGguf() {
  GgufSpec spec;
  spec.SetString("general.architecture", "llama");
  spec.SetString("general.name", "tiny");
  spec.SetU32("llama.block_count", 2);
  spec.SetU32("llama.context_length", 64);
  spec.SetU32("llama.embedding_length", 16);
  spec.SetU32("llama.feed_forward_length", 24);
  spec.SetU32("llama.attention.head_count", 2);
  spec.SetU32("llama.attention.head_count_kv", 1);
  spec.SetF32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  spec.SetU32("llama.rope.dimension_count", 8);
  spec.SetF32("llama.rope.freq_base", 10000.0f);
  spec.SetString("tokenizer.ggml.model", "llama");
  spec.SetStrings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b"});
  spec.SetU32("tokenizer.ggml.bos_token_id", 1);
  spec.SetU32("tokenizer.ggml.eos_token_id", 2);
  const auto add = [&spec](const std::string& name, const std::vector<int64_t>& shape) {
    GgufSpec::Tensor tensor{.name = name, .dims = {shape.rbegin(), shape.rend()}};
    size_t num_bytes = 4;
    for (const uint64_t size : tensor.dims) num_bytes *= size;
    tensor.data.resize(num_bytes);
    spec.tensors.push_back(std::move(tensor));
  };
  add("token_embd.weight", {5, 16});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const auto& [name, shape] : TinyLayerShapes()) add(layer + name + ".weight", shape);
  }
  add("output_norm.weight", {16});
  return spec;
}

inline nlohmann::json TinyConfigJson() {
  return {{"model_type", "llama"},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"vocab_size", 5},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"bos_token_id", 1},
          {"eos_token_id", 2},
          {"hidden_act", "silu"}};
}

// "blk.0.attn_q.weight" -> "model.layers.0.self_attn.q_proj.weight".
inline std::string HuggingFaceName(std::string name) {
  static const std::vector<std::pair<std::string_view, std::string_view>> parts = {
      {"token_embd", "model.embed_tokens"},
      {"output_norm", "model.norm"},
      {"blk.", "model.layers."},
      {"attn_norm", "input_layernorm"},
      {"attn_output", "self_attn.o_proj"},
      {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},
      {"attn_v", "self_attn.v_proj"},
      {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},
      {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  for (const auto& [gguf, hugging_face] : parts) {
    const size_t place = name.find(gguf);
    if (place != std::string::npos) name.replace(place, gguf.size(), hugging_face);
  }
  return name;
}

inline std::vector<SafetensorsTensor> TinySafetensors() {
  std::vector<SafetensorsTensor> tensors;
  for (const GgufSpec::Tensor& tensor : TinyGguf().tensors) {
    tensors.push_back({HuggingFaceName(tensor.name),
                       "F32",
                       {tensor.dims.rbegin(), tensor.dims.rend()},
                       tensor.data});
  }
  return tensors;
}

inline void WriteTinyFolder(const TempFolder& folder) {
  WriteFile(folder / "config.json", TinyConfigJson().dump());
  WriteFile(folder / "model.safetensors", SafetensorsBytes(TinySafetensors()));
}

}  // namespace kvick::testing

#endif  // KVICK_MODEL_TINY_LLAMA_TESTING_H_
