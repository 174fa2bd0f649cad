#include "model/arch/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kvick {
namespace {

constexpr std::array kArchitectures = {&kLlama,  &kMistral, &kQwen2,   &kQwen3,   &kGemma2,
                                       &kGemma3, &kPhi3,    &kGranite, &kSmolLm3, &kOlmo2};

const Architecture* Find(std::string_view Architecture::*name, std::string_view value) {
  if (value.empty()) return nullptr;
  const auto found = std::ranges::find_if(kArchitectures, [&](const Architecture* architecture) {
    return architecture->*name == value;
  });
  return found == kArchitectures.end() ? nullptr : *found;
}

}  // namespace

std::span<const Architecture* const> Architectures() { return kArchitectures; }

const Architecture* FindGgufArchitecture(std::string_view gguf_name) {
  return Find(&Architecture::gguf_name, gguf_name);
}

const Architecture* FindHfArchitecture(std::string_view model_type) {
  return Find(&Architecture::hf_name, model_type);
}

std::string ArchitectureNames(std::string_view Architecture::*name) {
  std::vector<std::string> quoted;
  for (const Architecture* architecture : kArchitectures) {
    if (!(architecture->*name).empty())
      quoted.push_back(fmt::format("\"{}\"", architecture->*name));
  }
  if (quoted.size() == 1) return quoted.front();
  const std::string last = quoted.back();
  quoted.pop_back();
  return fmt::format("{} or {}", fmt::join(quoted, ", "), last);
}

constexpr TensorNames kGgufTensors{
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .output = "output",
    .layer_prefix = "blk.",
    .attention_norm = "attn_norm",
    .attention_post_norm = "post_attention_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .o = "attn_output",
    .qkv = "attn_qkv",
    .q_norm = "attn_q_norm",
    .k_norm = "attn_k_norm",
    .ffn_norm = "ffn_norm",
    .ffn_post_norm = "post_ffw_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
    .gate_up = "ffn_up",  // with gate in its first half
};

constexpr TensorNames kHfTensors{
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .output = "lm_head",
    .layer_prefix = "model.layers.",
    .attention_norm = "input_layernorm",
    .attention_post_norm = {},
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .o = "self_attn.o_proj",
    .qkv = "self_attn.qkv_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .ffn_norm = "post_attention_layernorm",
    .ffn_post_norm = {},
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .gate_up = "mlp.gate_up_proj",
};

constexpr TensorNames kHfPostNormTensors = [] {
  TensorNames names = kHfTensors;
  names.attention_post_norm = "post_attention_layernorm";
  names.ffn_norm = "pre_feedforward_layernorm";
  names.ffn_post_norm = "post_feedforward_layernorm";
  return names;
}();

}  // namespace kvick
