#ifndef KVICK_MODEL_RANDOM_LLAMA_TESTING_H_
#define KVICK_MODEL_RANDOM_LLAMA_TESTING_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "formats/files_testing.h"
#include "formats/gguf_testing.h"
#include "kvick/model.h"
#include "quant/weight_format.h"

// A GGUF Llama of any geometry with random weights, for tests.
namespace kvick::testing {

struct RandomLlama {
  int64_t num_layers = 2;
  int64_t hidden_size = 64;
  int64_t intermediate_size = 96;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t vocab_size = 100;
  int64_t max_positions = 512;
  WeightType type = WeightType::kF32;
  const char* architecture = "llama";
};

// `num` normal numbers of this standard deviation, as `type` stores them.
inline std::string RandomWeightBytes(std::mt19937& random, WeightType type, int64_t num,
                                     double deviation) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(static_cast<size_t>(num));
  for (float& value : values) value = normal(random);
  std::string bytes(static_cast<size_t>(WeightBytes(type, num).value()), '\0');
  EncodeWeights(type, values.data(), num, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

inline GgufSpec RandomGguf(const RandomLlama& m, uint32_t seed = 1) {
  GgufSpec spec;
  const std::string prefix = std::string(m.architecture) + ".";
  spec.SetString("general.architecture", m.architecture);
  const std::pair<const char*, int64_t> numbers[] = {
      {"block_count", m.num_layers},         {"context_length", m.max_positions},
      {"embedding_length", m.hidden_size},   {"feed_forward_length", m.intermediate_size},
      {"attention.head_count", m.num_heads}, {"attention.head_count_kv", m.num_kv_heads},
      {"attention.key_length", m.head_dim},  {"attention.value_length", m.head_dim},
      {"vocab_size", m.vocab_size}};
  for (const auto& [name, value] : numbers) {
    spec.SetU32(prefix + name, static_cast<uint32_t>(value));
  }
  spec.SetF32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  std::mt19937 random(seed);
  const auto add = [&](const std::string& name, int64_t num_rows, int64_t num_cols) {
    spec.tensors.push_back(
        {.name = name + ".weight",
         .dims = {static_cast<uint64_t>(num_cols), static_cast<uint64_t>(num_rows)},
         .type = FormatOf(m.type).gguf_type,
         .data = RandomWeightBytes(random, m.type, num_rows * num_cols,
                                   1 / std::sqrt(static_cast<double>(num_cols)))});
  };
  const auto add_norm = [&](const std::string& name) {
    const std::vector<float> ones(static_cast<size_t>(m.hidden_size), 1.0f);
    spec.tensors.push_back(
        {.name = name + ".weight",
         .dims = {static_cast<uint64_t>(m.hidden_size)},
         .data = std::string(reinterpret_cast<const char*>(ones.data()), ones.size() * 4)});
  };
  add("token_embd", m.vocab_size, m.hidden_size);
  for (int64_t i = 0; i < m.num_layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    add_norm(layer + "attn_norm");
    add(layer + "attn_q", m.num_heads * m.head_dim, m.hidden_size);
    add(layer + "attn_k", m.num_kv_heads * m.head_dim, m.hidden_size);
    add(layer + "attn_v", m.num_kv_heads * m.head_dim, m.hidden_size);
    add(layer + "attn_output", m.hidden_size, m.num_heads * m.head_dim);
    add_norm(layer + "ffn_norm");
    add(layer + "ffn_gate", m.intermediate_size, m.hidden_size);
    add(layer + "ffn_up", m.intermediate_size, m.hidden_size);
    add(layer + "ffn_down", m.hidden_size, m.intermediate_size);
  }
  add_norm("output_norm");
  add("output", m.vocab_size, m.hidden_size);
  return spec;
}

// Opened from a file that is gone with the object.
struct OpenedRandomLlama {
  TempFolder folder;
  std::string path = folder / "model.gguf";
  std::unique_ptr<Model> model;

  explicit OpenedRandomLlama(const RandomLlama& geometry, uint32_t seed = 1) {
    WriteFile(path, RandomGguf(geometry, seed).Build());
    model = Model::Open(path).value();
  }
};

inline std::vector<int32_t> RandomTokens(int64_t num, int64_t vocab_size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(num));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab_size);
  return tokens;
}

}  // namespace kvick::testing

#endif  // KVICK_MODEL_RANDOM_LLAMA_TESTING_H_
