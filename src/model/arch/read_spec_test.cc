#include "model/arch/read_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "base/hash_of_bits_testing.h"
#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/gguf_testing.h"
#include "formats/json.h"
#include "model/tiny_llama_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::GgufSpec;
using testing::HashOfBits;
using testing::Packed;
using testing::TinyConfigJson;
using testing::TinyGguf;
using Json = nlohmann::json;

Result<ModelSpec> FromSpec(const GgufSpec& spec) {
  const std::string bytes = spec.Build();
  return GgufFile::Parse(AsBytes(bytes)).and_then(ModelSpecFromGguf);
}

void ExpectTinySizes(const ModelSpec& config) {
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers(), 2);
  EXPECT_EQ(config.hidden_size, 16);
  EXPECT_EQ(config.intermediate_size, 24);
  EXPECT_EQ(config.num_heads, 2);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 5);
  EXPECT_EQ(config.max_positions, 64);
  EXPECT_EQ(config.bos_id, 1);
  EXPECT_EQ(config.eos_ids, std::vector<int32_t>{2});
  EXPECT_EQ(config.ropes[0].theta, 10000.0);
  EXPECT_EQ(config.ropes[0].scaling, RopeSpec::Scaling::kNone);
  EXPECT_TRUE(config.tie_word_embeddings);
}

TEST(ModelSpec, IsTheSameFromBothFormats) {
  const auto hf = ModelSpecFromHf(TinyConfigJson());
  ASSERT_TRUE(hf.has_value()) << hf.error().message;
  ExpectTinySizes(*hf);
  EXPECT_EQ(hf->ropes[0].pairs, RopePairs::kHalves);
  EXPECT_EQ(hf->rms_norm_eps, 1e-5);
  const auto gguf = FromSpec(TinyGguf());
  ASSERT_TRUE(gguf.has_value()) << gguf.error().message;
  ExpectTinySizes(*gguf);
  EXPECT_EQ(gguf->ropes[0].pairs, RopePairs::kInterleaved);
  EXPECT_EQ(gguf->rms_norm_eps, 1e-5f);
  EXPECT_EQ(gguf->name, "tiny");
}

TEST(ModelSpecHf, FillsInWhatMayBeAbsent) {
  Json json = TinyConfigJson();
  for (const char* key : {"num_key_value_heads", "max_position_embeddings", "rms_norm_eps",
                          "rope_theta", "tie_word_embeddings", "hidden_act", "bos_token_id"}) {
    json.erase(key);
  }
  json["eos_token_id"] = nullptr;
  json["head_dim"] = nullptr;
  const auto config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 8);
  EXPECT_EQ(config->max_positions, 2048);
  EXPECT_EQ(config->rms_norm_eps, 1e-6);
  EXPECT_EQ(config->ropes[0].theta, 10000.0);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->bos_id, std::nullopt);
  EXPECT_TRUE(config->eos_ids.empty());
}

TEST(ModelSpecHf, TakesAHeadDimOfItsOwnAndAListOfEos) {
  Json json = TinyConfigJson();
  json["head_dim"] = 32;
  json["eos_token_id"] = {4, 2};
  const auto config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->eos_ids, (std::vector<int32_t>{4, 2}));
}

TEST(ModelSpecHf, ReadsEverySpellingOfRopeScaling) {
  Json json = TinyConfigJson();
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  auto config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->ropes[0].scaling, RopeSpec::Scaling::kLinear);
  EXPECT_EQ(config->ropes[0].factor, 4.0);
  EXPECT_EQ(config->ropes[0].theta, 10000.0);

  json["rope_scaling"] = {{"rope_type", "default"}};
  config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->ropes[0].scaling, RopeSpec::Scaling::kNone);

  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000},
                             {"factor", 8.0},           {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};
  config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->ropes[0].scaling, RopeSpec::Scaling::kLlama3);
  EXPECT_EQ(config->ropes[0].theta, 500000.0);
  EXPECT_EQ(config->ropes[0].original_max_positions, 32);
}

TEST(ModelSpecHf, RefusesATextCutAtAnyByte) {
  const std::string text = TinyConfigJson().dump();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseJson(text.substr(0, size), "config.json").has_value()) << "cut at " << size;
  }
}

TEST(ModelSpecHf, TakesMistralWithoutSlidingWindow) {
  Json json = TinyConfigJson();
  json["model_type"] = "mistral";
  EXPECT_TRUE(ModelSpecFromHf(json).has_value());  // 4096, of 64 positions
  json["sliding_window"] = 64;
  EXPECT_TRUE(ModelSpecFromHf(json).has_value());
  json["sliding_window"] = nullptr;
  json["max_position_embeddings"] = 32768;
  EXPECT_TRUE(ModelSpecFromHf(json).has_value());
}

// As in transformers, where MistralConfig has 8 KV heads unless it says otherwise.
TEST(ModelSpecHf, TellsAMissingKeyFromOneOfNull) {
  Json json = TinyConfigJson();
  json["model_type"] = "mistral";
  json["num_attention_heads"] = 16;
  json["hidden_size"] = 32;
  json["num_key_value_heads"] = nullptr;
  EXPECT_EQ(ModelSpecFromHf(json)->num_kv_heads, 16);
  json.erase("num_key_value_heads");
  EXPECT_EQ(ModelSpecFromHf(json)->num_kv_heads, 8);
  json["model_type"] = "llama";
  EXPECT_EQ(ModelSpecFromHf(json)->num_kv_heads, 16);
}

TEST(ModelSpecHf, LeavesOutTokensThatCannotCome) {
  Json json = TinyConfigJson();
  json["bos_token_id"] = 5;
  json["eos_token_id"] = {5, 4, ~uint64_t{0}, uint64_t{1} << 32};
  const auto config = ModelSpecFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->bos_id, std::nullopt);
  EXPECT_EQ(config->eos_ids, (std::vector<int32_t>{4}));
}

TEST(ModelSpecHf, ReadsTheEosTokensOfAGenerationConfig) {
  EXPECT_EQ(*EosIdsFromHf({{"eos_token_id", {9, 4, 5}}}, 5), (std::vector<int32_t>{4}));
  EXPECT_EQ(*EosIdsFromHf({{"eos_token_id", 3}}, 5), (std::vector<int32_t>{3}));
  EXPECT_EQ(*EosIdsFromHf({{"eos_token_id", nullptr}}, 5), std::nullopt);
  EXPECT_EQ(*EosIdsFromHf(Json::object(), 5), std::nullopt);
  EXPECT_EQ(EosIdsFromHf({{"eos_token_id", "</s>"}}, 5, "x/generation_config.json").error().message,
            "x/generation_config.json: eos_token_id: expected a token id, got \"</s>\"");
}

TEST(ModelSpecHf, NamesTheFile) {
  EXPECT_EQ(ModelSpecFromHf(Json::array(), "x/config.json").error().message,
            "x/config.json: expected an object, got an array");
  EXPECT_EQ(ModelSpecFromHf({{"model_type", "llama"}}, "x/config.json").error().message,
            "x/config.json: num_hidden_layers is missing");
}

TEST(ModelSpec, TakesHeadsOf2) {
  Json json = TinyConfigJson();
  json["head_dim"] = 2;
  EXPECT_EQ(ModelSpecFromHf(json)->head_dim, 2);
  GgufSpec spec = TinyGguf();
  spec.SetU32("llama.attention.key_length", 2);
  spec.SetU32("llama.rope.dimension_count", 2);
  EXPECT_EQ(FromSpec(spec)->head_dim, 2);
}

using HfDamage = testing::Damage<Json>;  // a patch

class ModelSpecHfDamage : public ::testing::TestWithParam<HfDamage> {};

TEST_P(ModelSpecHfDamage, IsOneClearSentence) {
  Json json = TinyConfigJson();
  json.merge_patch(GetParam().change);
  const Error error = testing::ErrorOf(ModelSpecFromHf(json));
  EXPECT_EQ(error.message.find("config.json: "), 0u) << error.message;
  testing::ExpectRefused(error, GetParam());
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kUnsupported = ErrorCode::kUnsupported;

Json Llama3Patch(const Json& patch) {
  Json scaling = {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 32}};
  scaling.merge_patch(patch);
  return {{"rope_scaling", scaling}};
}

const HfDamage kHfDamages[] = {
    {"OtherArchitecture",
     {{"model_type", "gpt2"}},
     "\"smollm3\" or \"olmo2\", got \"gpt2\"",
     kUnsupported},
    {"NoArchitecture",
     {{"model_type", nullptr}},
     "\"smollm3\" or \"olmo2\", got \"\"",
     kUnsupported},
    {"OtherActivation",
     {{"hidden_act", "gelu"}},
     "hidden_act: expected \"silu\", got \"gelu\"",
     kUnsupported},
    {"Quantized",
     {{"quantization_config", {{"bits", 4}}}},
     "quantization_config: expected weights of F32, F16 or BF16, got an object",
     kUnsupported},
    {"PartialRotation",
     {{"partial_rotary_factor", 0.5}},
     "partial_rotary_factor: expected 1, got 0.5",
     kUnsupported},
    {"NoLayers", {{"num_hidden_layers", nullptr}}, "num_hidden_layers is missing"},
    {"ZeroLayers", {{"num_hidden_layers", 0}}, "num_hidden_layers: expected 1 to 1024, got 0"},
    {"TooManyLayers",
     {{"num_hidden_layers", 2000000000}},
     "num_hidden_layers: expected 1 to 1024, got 2000000000"},
    {"LayersAsText",
     {{"num_hidden_layers", "2"}},
     "num_hidden_layers: expected an integer, got \"2\""},
    {"LayersAsFraction", {{"num_hidden_layers", 2.5}}, ": expected an integer, got 2.5"},
    {"LayersAbove2To63",
     {{"num_hidden_layers", uint64_t{1} << 63}},
     ": expected 1 to 1024, got 9223372036854775808"},
    {"NegativeHiddenSize", {{"hidden_size", -16}}, "hidden_size: expected 1 to 1048576, got -16"},
    {"ZeroHeads", {{"num_attention_heads", 0}}, "num_attention_heads: expected 1 to 4096, got 0"},
    {"HeadsThatDoNotDivide",
     {{"num_attention_heads", 3}},
     "hidden_size: expected a multiple of num_attention_heads (3), got 16"},
    {"KvHeadsThatDoNotDivide",
     {{"num_attention_heads", 2}, {"num_key_value_heads", 3}},
     "num_key_value_heads: expected a divisor of num_attention_heads (2), got 3"},
    {"OddHeadDim", {{"head_dim", 9}}, "head_dim: expected an even number, got 9"},
    {"HeadDimTooSmall", {{"hidden_size", 2}}, "head_dim: expected 2 to 256, got 1"},
    {"HeadDimTooLarge", {{"head_dim", 512}}, "head_dim: expected 2 to 256, got 512"},
    {"ZeroVocabulary", {{"vocab_size", 0}}, "vocab_size: expected 1 to 16777216, got 0"},
    {"ZeroPositions",
     {{"max_position_embeddings", 0}},
     "max_position_embeddings: expected 1 to 268435456, got 0"},
    {"ZeroEps", {{"rms_norm_eps", 0.0}}, "rms_norm_eps: expected 1e-15 to 1, got 0"},
    {"NanEps", {{"rms_norm_eps", std::nan("")}}, "rms_norm_eps: expected a finite number, got NaN"},
    {"EpsAsText", {{"rms_norm_eps", "small"}}, "rms_norm_eps: expected a number, got \"small\""},
    {"ZeroTheta", {{"rope_theta", 0.0}}, "rope_theta: expected 1 to 1000000000000000, got 0"},
    {"NegativeTheta",
     {{"rope_theta", -10000.0}},
     "rope_theta: expected 1 to 1000000000000000, got -10000"},
    {"InfiniteTheta",
     {{"rope_theta", kInfinity}},
     "rope_theta: expected a finite number, got Infinity"},
    {"YarnWithoutRotation",
     {{"rope_theta", 1.0}, {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}},
     "rope_theta: expected more than 1 with yarn, got 1"},
    {"LongRopeOfAnotherWidth",
     {{"rope_scaling",
       {{"type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0, 2.0}}}}},
     "rope_scaling.short_factor: expected "},
    {"OldDynamic",
     {{"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}}},
     "\"llama3\", \"yarn\" or \"longrope\", got \"dynamic\"",
     kUnsupported},
    {"ScalingAsText",
     {{"rope_scaling", "linear"}},
     "rope_scaling: expected an object, got \"linear\""},
    {"ScalingPerLayerType",
     {{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}},
     "rope_parameters: expected one set for all layers, got an object for \"full_attention\"",
     kUnsupported},
    {"PartialRotationInParameters",
     {{"rope_parameters", {{"partial_rotary_factor", 0.25}}}},
     "rope_parameters.partial_rotary_factor: expected 1, got 0.25",
     kUnsupported},
    {"NoFactor", {{"rope_scaling", {{"rope_type", "linear"}}}}, "rope_scaling.factor is missing"},
    {"ZeroFactor",
     {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}},
     "factor: expected 0.001 to 1000000, got 0"},
    {"Llama3WithoutContext", Llama3Patch({{"original_max_position_embeddings", nullptr}}),
     "original_max_position_embeddings is missing"},
    {"Llama3Reversed", Llama3Patch({{"low_freq_factor", 4.0}}),
     "low_freq_factor: expected less than high_freq_factor (4), got 4"},
    {"TieAsNumber",
     {{"tie_word_embeddings", 1}},
     "tie_word_embeddings: expected true or false, got 1"},
    {"BosAsText", {{"bos_token_id", "<s>"}}, "bos_token_id: expected a token id, got \"<s>\""},
    {"BosAsList", {{"bos_token_id", {1}}}, "bos_token_id: expected a token id, got an array"},
    {"EosNegative", {{"eos_token_id", {2, -1}}}, "eos_token_id: expected a token id, got -1"},
    {"EosAsText", {{"eos_token_id", "</s>"}}, "eos_token_id: expected a token id, got \"</s>\""},
    {"EosAsFraction", {{"eos_token_id", 2.0}}, "eos_token_id: expected a token id, got 2.0"},
    {"EosOfNull", {{"eos_token_id", {2, nullptr}}}, "eos_token_id: expected a token id, got null"},
    {"EosOfInfinity",
     {{"eos_token_id", kInfinity}},
     "eos_token_id: expected a token id, got Infinity"},
    {"WindowOfNothing",
     {{"model_type", "mistral"}, {"sliding_window", 0}},
     "sliding_window: expected 1 to 9223372036854775807, got 0"},
    {"LayerTypesOfOtherLayers",
     {{"model_type", "gemma2"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"layer_types", {"full_attention"}}},
     "layer_types: expected "},
    {"LayersWithoutRopeOfALlama",
     {{"no_rope_layers", {1, 0}}},
     "no_rope_layers: expected 0, got an array",
     kUnsupported},
    {"WindowAsText",
     {{"model_type", "mistral"}, {"sliding_window", "4096"}},
     "sliding_window: expected an integer, got \"4096\""},
};

INSTANTIATE_TEST_SUITE_P(All, ModelSpecHfDamage, ::testing::ValuesIn(kHfDamages),
                         testing::DamageName());

TEST(ModelSpecGguf, ReadsLinearScalingOldAndNew) {
  GgufSpec spec = TinyGguf();
  spec.SetF32("llama.rope.scaling.factor", 4.0f);
  auto config = FromSpec(spec);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->ropes[0].scaling, RopeSpec::Scaling::kLinear);
  EXPECT_EQ(config->ropes[0].factor, 4.0);
  spec.SetString("llama.rope.scaling.type", "none");
  EXPECT_EQ(FromSpec(spec)->ropes[0].scaling, RopeSpec::Scaling::kNone);

  GgufSpec old = TinyGguf();
  old.SetF32("llama.rope.scale_linear", 2.0f);
  EXPECT_EQ(FromSpec(old)->ropes[0].factor, 2.0);
  EXPECT_EQ(FromSpec(old)->ropes[0].scaling, RopeSpec::Scaling::kLinear);
}

TEST(ModelSpecGguf, FillsInWhatMayBeAbsent) {
  GgufSpec spec = TinyGguf();
  for (const char* key : {"llama.attention.head_count_kv", "llama.rope.freq_base", "general.name",
                          "llama.rope.dimension_count", "tokenizer.ggml.bos_token_id"}) {
    spec.Remove(key);
  }
  const auto config = FromSpec(spec);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->ropes[0].theta, 10000.0);
  EXPECT_EQ(config->bos_id, std::nullopt);
}

TEST(ModelSpecGguf, LeavesOutTokensThatCannotCome) {
  GgufSpec spec = TinyGguf();
  spec.SetU32("tokenizer.ggml.bos_token_id", 5);
  spec.SetU32("tokenizer.ggml.eos_token_id", UINT32_MAX);
  spec.SetU32("tokenizer.ggml.eot_token_id", 4);
  const auto config = FromSpec(spec);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->bos_id, std::nullopt);
  EXPECT_EQ(config->eos_ids, (std::vector<int32_t>{4}));
}

TEST(ModelSpecGguf, TakesAWindowOfAllPositions) {
  GgufSpec spec = TinyGguf();
  spec.SetU32("llama.attention.sliding_window", 64);
  EXPECT_TRUE(FromSpec(spec).has_value());
}

TEST(ModelSpecGguf, CollectsTheTokensThatEndAText) {
  GgufSpec spec = TinyGguf();
  spec.SetU32("tokenizer.ggml.eot_token_id", 4);
  spec.SetU32("tokenizer.ggml.eom_token_id", 2);
  EXPECT_EQ(FromSpec(spec)->eos_ids, (std::vector<int32_t>{2, 4}));
}

TEST(ModelSpecGguf, NeedsNoTensors) {
  GgufSpec spec = TinyGguf();
  spec.tensors.clear();
  EXPECT_EQ(FromSpec(spec)->vocab_size, 5);
  spec.Remove("tokenizer.ggml.tokens");
  spec.SetU32("llama.vocab_size", 7);
  spec.Remove("tokenizer.ggml.eos_token_id");
  EXPECT_EQ(FromSpec(spec)->vocab_size, 7);
}

TEST(ModelSpecGguf, TakesTheVocabularyFromTheEmbeddingWithoutATokenList) {
  GgufSpec spec = TinyGguf();
  spec.Remove("tokenizer.ggml.tokens");
  EXPECT_EQ(FromSpec(spec)->vocab_size, 5);
}

using GgufDamage = testing::Damage<std::function<void(GgufSpec&)>>;

class ModelSpecGgufDamage : public ::testing::TestWithParam<GgufDamage> {};

TEST_P(ModelSpecGgufDamage, IsOneClearSentence) {
  GgufSpec spec = TinyGguf();
  GetParam().change(spec);
  const Error error = testing::ErrorOf(FromSpec(spec));
  EXPECT_EQ(error.message.find("gguf: "), 0u) << error.message;
  testing::ExpectRefused(error, GetParam());
}

const float kNan = std::nanf("");

GgufSpec::Tensor FreqFactors(std::vector<float> values) {
  GgufSpec::Tensor tensor{.name = "rope_freqs.weight", .dims = {values.size()}};
  for (const float value : values) tensor.data += Packed(value);
  return tensor;
}

const GgufDamage kGgufDamages[] = {
    {"NoArchitecture", [](GgufSpec& s) { s.Remove("general.architecture"); },
     "general.architecture is missing"},
    {"OtherArchitecture", [](GgufSpec& s) { s.SetString("general.architecture", "gpt2"); },
     "\"smollm3\" or \"olmo2\", got \"gpt2\"", kUnsupported},
    {"Experts", [](GgufSpec& s) { s.SetU32("llama.expert_count", 8); },
     "llama.expert_count: expected 0, got 8", kUnsupported},
    {"OneFileOfSeveral",
     [](GgufSpec& s) { s.Set("split.count", GgufType::kU16, Packed<uint16_t>(3)); },
     "gguf: expected a whole model, got part 1 of 3: merge the parts with llama.cpp's gguf-split "
     "--merge",
     kUnsupported},
    {"NotCausal",
     [](GgufSpec& s) {
       s.Set("llama.attention.causal", GgufType::kBool, {"\0", 1});
     },
     "llama.attention.causal: expected true, got false", kUnsupported},
    {"NoLayers", [](GgufSpec& s) { s.Remove("llama.block_count"); },
     "llama.block_count is missing"},
    {"LayersAsText", [](GgufSpec& s) { s.SetString("llama.block_count", "2"); },
     "llama.block_count: expected an integer, got a string"},
    {"ZeroLayers", [](GgufSpec& s) { s.SetU32("llama.block_count", 0); },
     "llama.block_count: expected 1 to 1024, got 0"},
    {"MaxLayers", [](GgufSpec& s) { s.SetU32("llama.block_count", UINT32_MAX); },
     "llama.block_count: expected 1 to 1024, got 4294967295"},
    {"ZeroHidden", [](GgufSpec& s) { s.SetU32("llama.embedding_length", 0); },
     "llama.embedding_length: expected 1 to 1048576, got 0"},
    {"ZeroInner", [](GgufSpec& s) { s.SetU32("llama.feed_forward_length", 0); },
     "llama.feed_forward_length: expected 1 to 1048576, got 0"},
    {"ZeroHeads", [](GgufSpec& s) { s.SetU32("llama.attention.head_count", 0); },
     "llama.attention.head_count: expected 1 to 4096, got 0"},
    {"KvHeadsThatDoNotDivide", [](GgufSpec& s) { s.SetU32("llama.attention.head_count_kv", 3); },
     "head_count_kv: expected a divisor of llama.attention.head_count (2), got 3"},
    {"ValuesOfAnotherLength", [](GgufSpec& s) { s.SetU32("llama.attention.value_length", 16); },
     "value_length: expected the length of a key (8), got 16", kUnsupported},
    {"PartialRotation", [](GgufSpec& s) { s.SetU32("llama.rope.dimension_count", 4); },
     "llama.rope.dimension_count: expected the length of a key (8), got 4", kUnsupported},
    {"ZeroContext", [](GgufSpec& s) { s.SetU32("llama.context_length", 0); },
     "llama.context_length: expected 1 to 268435456, got 0"},
    {"NoEps", [](GgufSpec& s) { s.Remove("llama.attention.layer_norm_rms_epsilon"); },
     "layer_norm_rms_epsilon is missing"},
    {"NanEps", [](GgufSpec& s) { s.SetF32("llama.attention.layer_norm_rms_epsilon", kNan); },
     "layer_norm_rms_epsilon: expected 1e-15 to 1, got nan"},
    {"NanTheta", [](GgufSpec& s) { s.SetF32("llama.rope.freq_base", kNan); },
     "freq_base: expected 1 to 1000000000000000, got nan"},
    {"InfiniteTheta",
     [](GgufSpec& s) { s.SetF32("llama.rope.freq_base", std::numeric_limits<float>::infinity()); },
     "freq_base: expected 1 to 1000000000000000, got inf"},
    {"OtherScaling", [](GgufSpec& s) { s.SetString("llama.rope.scaling.type", "dynamic"); },
     "\"yarn\" or \"longrope\", got \"dynamic\"", kUnsupported},
    {"ZeroFactor", [](GgufSpec& s) { s.SetF32("llama.rope.scaling.factor", 0.0f); },
     "llama.rope.scaling.factor: expected 0.001 to 1000000, got 0"},
    {"AttentionFactor", [](GgufSpec& s) { s.SetF32("llama.rope.scaling.attn_factor", 0.0f); },
     "attn_factor: expected 0.001 to 1000000, got 0"},
    {"TokenListShorterThanTheEmbedding",
     [](GgufSpec& s) {
       s.SetStrings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
     },
     "the number of rows of token_embd.weight: expected 3, as the length of tokenizer.ggml.tokens, "
     "got 5"},
    {"TokenListLongerThanTheEmbedding",
     [](GgufSpec& s) {
       s.SetStrings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f"});
     },
     "the number of rows of token_embd.weight: expected 6, as the length of tokenizer.ggml.tokens, "
     "got 5"},
    {"VocabSizeAtOdds", [](GgufSpec& s) { s.SetU32("llama.vocab_size", 4); },
     "llama.vocab_size: expected 5, as the length of tokenizer.ggml.tokens, got 4"},
    {"TokensAsText", [](GgufSpec& s) { s.SetString("tokenizer.ggml.tokens", "abc"); },
     "tokenizer.ggml.tokens: expected an array of strings, got a string"},
    {"NoVocabularyAtAll",
     [](GgufSpec& s) {
       s.Remove("tokenizer.ggml.tokens");
       s.tensors.clear();
     },
     "tokenizer.ggml.tokens is missing"},
    {"EosNegative",
     [](GgufSpec& s) { s.Set("tokenizer.ggml.eos_token_id", GgufType::kI32, Packed(-1)); },
     "tokenizer.ggml.eos_token_id: expected a token id, got -1"},
    {"EosAsText", [](GgufSpec& s) { s.SetString("tokenizer.ggml.eos_token_id", "2"); },
     "tokenizer.ggml.eos_token_id: expected an integer, got a string"},
    {"LastPartOfSeveral",
     [](GgufSpec& s) {
       s.entries.clear();
       s.Set("split.no", GgufType::kU16, Packed<uint16_t>(2));
       s.Set("split.count", GgufType::kU16, Packed<uint16_t>(3));
     },
     "got part 3 of 3", kUnsupported},
    {"FreqFactorsOfAnotherLength",
     [](GgufSpec& s) {
       s.tensors.push_back(FreqFactors({1, 1, 1}));
     },
     "rope_freqs.weight: expected F32 [4], got F32 [3]"},
    {"FreqFactorOfZero",
     [](GgufSpec& s) {
       s.tensors.push_back(FreqFactors({1, 0, 1, 1}));
     },
     "an element of rope_freqs.weight: expected 0.001 to 1000000, got 0"},
};

INSTANTIATE_TEST_SUITE_P(All, ModelSpecGgufDamage, ::testing::ValuesIn(kGgufDamages),
                         testing::DamageName());

TEST(RopeInverseFrequencies, FollowTheDefinition) {
  RopeSpec rope;
  rope.num_rotated = 8;
  rope.theta = 10000.0;
  const std::vector<double> plain = RopeInverseFrequencies(rope);
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_DOUBLE_EQ(plain[0], 1.0);
  EXPECT_DOUBLE_EQ(plain[1], 0.1);
  EXPECT_DOUBLE_EQ(plain[3], 0.001);

  rope.scaling = RopeSpec::Scaling::kLinear;
  rope.factor = 4.0;
  EXPECT_DOUBLE_EQ(RopeInverseFrequencies(rope)[1], 0.025);

  rope.scaling = RopeSpec::Scaling::kNone;
  rope.freq_factors = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(RopeInverseFrequencies(rope)[3], 0.001 / 8);
}

TEST(RopeInverseFrequencies, BlendBetweenShortAndLongWavelengths) {
  RopeSpec rope;
  rope.num_rotated = 8;
  rope.theta = 10000.0;
  rope.scaling = RopeSpec::Scaling::kLlama3;
  rope.factor = 8.0;
  rope.low_freq_factor = 1.0;
  rope.high_freq_factor = 4.0;
  // 2 waves of pair 1 fit the original context: a third of the way from low to high.
  rope.original_max_positions = 126;  // 2.005 * 2 pi / 0.1
  const std::vector<double> scaled = RopeInverseFrequencies(rope);
  EXPECT_DOUBLE_EQ(scaled[0], 1.0);
  const double blend = (126 * 0.1 / (2 * std::numbers::pi) - 1.0) / 3.0;
  EXPECT_NEAR(scaled[1], (1 - blend) * 0.1 / 8 + blend * 0.1, 1e-15);
  EXPECT_DOUBLE_EQ(scaled[2], 0.01 / 8);
  EXPECT_DOUBLE_EQ(scaled[3], 0.001 / 8);
}

// Another hash means other numbers: a new version of the numerics.
TEST(RopeInverseFrequencies, HaveTheRecordedBits) {
  RopeSpec rope;
  rope.num_rotated = 128;
  rope.theta = 500000;
  EXPECT_EQ(HashOfBits(RopeInverseFrequencies(rope)), 11347183846660751888u);
  rope.scaling = RopeSpec::Scaling::kLlama3;
  rope.factor = 8;
  rope.original_max_positions = 8192;
  EXPECT_EQ(HashOfBits(RopeInverseFrequencies(rope)), 5645395570527931206u);
}

TEST(ModelSpec, ReadsTheTestModels) {
  const auto read = [](const std::string& name) {
    return ReadJsonObject(testing::TestModel(name) + "/config.json").and_then([](const Json& json) {
      return ModelSpecFromHf(json);
    });
  };
  const auto llama3 = read("tiny-bf16-sharded");
  ASSERT_TRUE(llama3.has_value()) << llama3.error().message;
  EXPECT_EQ(llama3->ropes[0].scaling, RopeSpec::Scaling::kLlama3);
  EXPECT_EQ(llama3->ropes[0].original_max_positions, 64);
  const auto linear = read("tiny-f32-hd128");
  ASSERT_TRUE(linear.has_value()) << linear.error().message;
  EXPECT_EQ(linear->ropes[0].scaling, RopeSpec::Scaling::kLinear);
  EXPECT_TRUE(read("tiny-f16-tied")->tie_word_embeddings);
  EXPECT_EQ(read("tiny-words-hf")->num_layers(), 5);
}

}  // namespace
}  // namespace kvick
