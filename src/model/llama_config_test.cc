#include "model/llama_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/gguf_testing.h"
#include "formats/json.h"
#include "model/tiny_llama_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::GgufSpec;
using testing::Packed;
using testing::TinyConfigJson;
using testing::TinyGguf;
using Json = nlohmann::json;

Result<LlamaConfig> FromSpec(const GgufSpec& spec) {
  const std::string bytes = spec.Build();
  return GgufFile::Parse(AsBytes(bytes)).and_then(LlamaConfigFromGguf);
}

void ExpectTinySizes(const LlamaConfig& config) {
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.hidden_size, 16);
  EXPECT_EQ(config.intermediate_size, 24);
  EXPECT_EQ(config.num_heads, 2);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 5);
  EXPECT_EQ(config.max_positions, 64);
  EXPECT_EQ(config.bos_id, 1);
  EXPECT_EQ(config.eos_ids, std::vector<int32_t>{2});
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.scaling, RopeConfig::Scaling::kNone);
  EXPECT_TRUE(config.tie_word_embeddings);
}

TEST(LlamaConfig, IsTheSameFromBothFormats) {
  const auto hf = LlamaConfigFromHf(TinyConfigJson());
  ASSERT_TRUE(hf.has_value()) << hf.error().message;
  ExpectTinySizes(*hf);
  EXPECT_EQ(hf->rope.pairs, RopePairs::kHalves);
  EXPECT_EQ(hf->rms_norm_eps, 1e-5);
  const auto gguf = FromSpec(TinyGguf());
  ASSERT_TRUE(gguf.has_value()) << gguf.error().message;
  ExpectTinySizes(*gguf);
  EXPECT_EQ(gguf->rope.pairs, RopePairs::kInterleaved);
  EXPECT_EQ(gguf->rms_norm_eps, 1e-5f);
  EXPECT_EQ(gguf->name, "tiny");
}

TEST(LlamaConfigHf, FillsInWhatMayBeAbsent) {
  Json json = TinyConfigJson();
  for (const char* key : {"num_key_value_heads", "max_position_embeddings", "rms_norm_eps",
                          "rope_theta", "tie_word_embeddings", "hidden_act", "bos_token_id"}) {
    json.erase(key);
  }
  json["eos_token_id"] = nullptr;
  json["head_dim"] = nullptr;
  const auto config = LlamaConfigFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 8);
  EXPECT_EQ(config->max_positions, 2048);
  EXPECT_EQ(config->rms_norm_eps, 1e-6);
  EXPECT_EQ(config->rope.theta, 10000.0);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->bos_id, std::nullopt);
  EXPECT_TRUE(config->eos_ids.empty());
}

TEST(LlamaConfigHf, TakesAHeadDimOfItsOwnAndAListOfEos) {
  Json json = TinyConfigJson();
  json["head_dim"] = 32;
  json["eos_token_id"] = {4, 2};
  const auto config = LlamaConfigFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->eos_ids, (std::vector<int32_t>{4, 2}));
}

TEST(LlamaConfigHf, ReadsEverySpellingOfRopeScaling) {
  Json json = TinyConfigJson();
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  auto config = LlamaConfigFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4.0);
  EXPECT_EQ(config->rope.theta, 10000.0);

  json["rope_scaling"] = {{"rope_type", "default"}};
  config = LlamaConfigFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kNone);

  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000},
                             {"factor", 8.0},           {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};
  config = LlamaConfigFromHf(json);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLlama3);
  EXPECT_EQ(config->rope.theta, 500000.0);
  EXPECT_EQ(config->rope.original_max_positions, 32);
}

TEST(LlamaConfigHf, RefusesATextCutAtAnyByte) {
  const std::string text = TinyConfigJson().dump();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseJson(text.substr(0, size), "config.json").has_value()) << "cut at " << size;
  }
}

TEST(LlamaConfigHf, TakesMistralWithoutSlidingWindow) {
  Json json = TinyConfigJson();
  json["model_type"] = "mistral";
  json["sliding_window"] = nullptr;
  EXPECT_TRUE(LlamaConfigFromHf(json).has_value());
  json["sliding_window"] = 4096;
  EXPECT_EQ(LlamaConfigFromHf(json).error().code, ErrorCode::kUnsupported);
}

using HfDamage = testing::Damage<Json>;  // a patch

class LlamaConfigHfDamage : public ::testing::TestWithParam<HfDamage> {};

TEST_P(LlamaConfigHfDamage, IsOneClearSentence) {
  Json json = TinyConfigJson();
  json.merge_patch(GetParam().change);
  const Error error = testing::ErrorOf(LlamaConfigFromHf(json));
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
    {"OtherArchitecture", {{"model_type", "gpt2"}}, "model_type is \"gpt2\"", kUnsupported},
    {"NoArchitecture", {{"model_type", nullptr}}, "model_type is \"\"", kUnsupported},
    {"OtherActivation", {{"hidden_act", "gelu"}}, "hidden_act is \"gelu\"", kUnsupported},
    {"Quantized",
     {{"quantization_config", {{"bits", 4}}}},
     "quantization_config is an object",
     kUnsupported},
    {"PartialRotation",
     {{"partial_rotary_factor", 0.5}},
     "partial_rotary_factor is 0.5",
     kUnsupported},
    {"NoLayers", {{"num_hidden_layers", nullptr}}, "num_hidden_layers is missing"},
    {"ZeroLayers", {{"num_hidden_layers", 0}}, "num_hidden_layers is 0, 1 to 1024 is possible"},
    {"TooManyLayers", {{"num_hidden_layers", 2000000000}}, "num_hidden_layers is 2000000000"},
    {"LayersAsText",
     {{"num_hidden_layers", "2"}},
     "num_hidden_layers is \"2\", an integer is wanted"},
    {"LayersAsFraction", {{"num_hidden_layers", 2.5}}, "is 2.5, an integer is wanted"},
    {"LayersAbove2To63",
     {{"num_hidden_layers", uint64_t{1} << 63}},
     "is 9223372036854775808, 1 to 1024 is possible"},
    {"NegativeHiddenSize", {{"hidden_size", -16}}, "hidden_size is -16, 1 to"},
    {"ZeroHeads", {{"num_attention_heads", 0}}, "num_attention_heads is 0, 1 to"},
    {"HeadsThatDoNotDivide",
     {{"num_attention_heads", 3}},
     "hidden_size is 16, a multiple of num_attention_heads (3) is wanted"},
    {"KvHeadsThatDoNotDivide",
     {{"num_attention_heads", 2}, {"num_key_value_heads", 3}},
     "num_key_value_heads is 3, a divisor of num_attention_heads (2) is wanted"},
    {"OddHeadDim", {{"head_dim", 9}}, "head_dim is 9, an even number is wanted"},
    {"HeadDimTooSmall", {{"hidden_size", 8}}, "head_dim is 4, 8 to 256 is possible"},
    {"HeadDimTooLarge", {{"head_dim", 512}}, "head_dim is 512, 8 to 256 is possible"},
    {"ZeroVocabulary", {{"vocab_size", 0}}, "vocab_size is 0"},
    {"ZeroPositions", {{"max_position_embeddings", 0}}, "max_position_embeddings is 0"},
    {"ZeroEps", {{"rms_norm_eps", 0.0}}, "rms_norm_eps is 0"},
    {"NanEps", {{"rms_norm_eps", std::nan("")}}, "rms_norm_eps is nan"},
    {"EpsAsText", {{"rms_norm_eps", "small"}}, "rms_norm_eps is \"small\", a number is wanted"},
    {"ZeroTheta", {{"rope_theta", 0.0}}, "rope_theta is 0"},
    {"NegativeTheta", {{"rope_theta", -10000.0}}, "rope_theta is -10000"},
    {"InfiniteTheta", {{"rope_theta", kInfinity}}, "rope_theta is inf"},
    {"Yarn",
     {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}},
     "rope_scaling.rope_type is \"yarn\"",
     kUnsupported},
    {"OldDynamic",
     {{"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}}},
     "rope_scaling.type is \"dynamic\"",
     kUnsupported},
    {"ScalingAsText", {{"rope_scaling", "linear"}}, "rope_scaling is \"linear\", an object"},
    {"ScalingPerLayerType",
     {{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}},
     "rope_parameters holds an object \"full_attention\"",
     kUnsupported},
    {"PartialRotationInParameters",
     {{"rope_parameters", {{"partial_rotary_factor", 0.25}}}},
     "rope_parameters.partial_rotary_factor is 0.25",
     kUnsupported},
    {"NoFactor", {{"rope_scaling", {{"rope_type", "linear"}}}}, "rope_scaling.factor is missing"},
    {"ZeroFactor", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}}, "factor is 0"},
    {"Llama3WithoutContext", Llama3Patch({{"original_max_position_embeddings", nullptr}}),
     "original_max_position_embeddings is missing"},
    {"Llama3Reversed", Llama3Patch({{"low_freq_factor", 4.0}}),
     "low_freq_factor is 4, less than high_freq_factor (4) is wanted"},
    {"TieAsNumber", {{"tie_word_embeddings", 1}}, "tie_word_embeddings is 1, true or false"},
    {"BosOutOfRange", {{"bos_token_id", 5}}, "bos_token_id is 5, 0 to 4 is possible"},
    {"EosNegative", {{"eos_token_id", {2, -1}}}, "eos_token_id is -1, 0 to 4 is possible"},
    {"EosAsText", {{"eos_token_id", "</s>"}}, "eos_token_id is \"</s>\", an integer is wanted"},
};

INSTANTIATE_TEST_SUITE_P(All, LlamaConfigHfDamage, ::testing::ValuesIn(kHfDamages),
                         testing::DamageName());

TEST(LlamaConfigGguf, ReadsLinearScalingOldAndNew) {
  GgufSpec spec = TinyGguf();
  spec.SetF32("llama.rope.scaling.factor", 4.0f);
  auto config = FromSpec(spec);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4.0);
  spec.SetString("llama.rope.scaling.type", "none");
  EXPECT_EQ(FromSpec(spec)->rope.scaling, RopeConfig::Scaling::kNone);

  GgufSpec old = TinyGguf();
  old.SetF32("llama.rope.scale_linear", 2.0f);
  EXPECT_EQ(FromSpec(old)->rope.factor, 2.0);
  EXPECT_EQ(FromSpec(old)->rope.scaling, RopeConfig::Scaling::kLinear);
}

TEST(LlamaConfigGguf, FillsInWhatMayBeAbsent) {
  GgufSpec spec = TinyGguf();
  for (const char* key : {"llama.attention.head_count_kv", "llama.rope.freq_base", "general.name",
                          "llama.rope.dimension_count", "tokenizer.ggml.bos_token_id"}) {
    spec.Remove(key);
  }
  const auto config = FromSpec(spec);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->rope.theta, 10000.0);
  EXPECT_EQ(config->bos_id, std::nullopt);
}

TEST(LlamaConfigGguf, CollectsTheTokensThatEndAText) {
  GgufSpec spec = TinyGguf();
  spec.SetU32("tokenizer.ggml.eot_token_id", 4);
  spec.SetU32("tokenizer.ggml.eom_token_id", 2);
  EXPECT_EQ(FromSpec(spec)->eos_ids, (std::vector<int32_t>{2, 4}));
}

TEST(LlamaConfigGguf, NeedsNoTensors) {
  GgufSpec spec = TinyGguf();
  spec.tensors.clear();
  EXPECT_EQ(FromSpec(spec)->vocab_size, 5);
  spec.Remove("tokenizer.ggml.tokens");
  spec.SetU32("llama.vocab_size", 7);
  spec.Remove("tokenizer.ggml.eos_token_id");
  EXPECT_EQ(FromSpec(spec)->vocab_size, 7);
}

TEST(LlamaConfigGguf, TakesTheVocabularyFromTheEmbeddingWithoutATokenList) {
  GgufSpec spec = TinyGguf();
  spec.Remove("tokenizer.ggml.tokens");
  EXPECT_EQ(FromSpec(spec)->vocab_size, 5);
}

using GgufDamage = testing::Damage<std::function<void(GgufSpec&)>>;

class LlamaConfigGgufDamage : public ::testing::TestWithParam<GgufDamage> {};

TEST_P(LlamaConfigGgufDamage, IsOneClearSentence) {
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
    {"OtherArchitecture", [](GgufSpec& s) { s.SetString("general.architecture", "qwen2"); },
     "general.architecture is \"qwen2\", only \"llama\" is possible", kUnsupported},
    {"Experts", [](GgufSpec& s) { s.SetU32("llama.expert_count", 8); }, "llama.expert_count is 8",
     kUnsupported},
    {"SlidingWindow", [](GgufSpec& s) { s.SetU32("llama.attention.sliding_window", 4096); },
     "sliding_window is 4096, at most 0 is possible", kUnsupported},
    {"OneFileOfSeveral",
     [](GgufSpec& s) { s.Set("split.count", GgufType::kU16, Packed<uint16_t>(3)); },
     "split.count is 3, at most 1 is possible", kUnsupported},
    {"NotCausal",
     [](GgufSpec& s) {
       s.Set("llama.attention.causal", GgufType::kBool, {"\0", 1});
     },
     "llama.attention.causal is false", kUnsupported},
    {"NoLayers", [](GgufSpec& s) { s.Remove("llama.block_count"); },
     "llama.block_count is missing"},
    {"LayersAsText", [](GgufSpec& s) { s.SetString("llama.block_count", "2"); },
     "llama.block_count is a string, an integer is wanted"},
    {"ZeroLayers", [](GgufSpec& s) { s.SetU32("llama.block_count", 0); },
     "llama.block_count is 0, 1 to 1024 is possible"},
    {"MaxLayers", [](GgufSpec& s) { s.SetU32("llama.block_count", UINT32_MAX); },
     "llama.block_count is 4294967295"},
    {"ZeroHidden", [](GgufSpec& s) { s.SetU32("llama.embedding_length", 0); },
     "llama.embedding_length is 0"},
    {"ZeroInner", [](GgufSpec& s) { s.SetU32("llama.feed_forward_length", 0); },
     "llama.feed_forward_length is 0"},
    {"ZeroHeads", [](GgufSpec& s) { s.SetU32("llama.attention.head_count", 0); },
     "llama.attention.head_count is 0"},
    {"KvHeadsThatDoNotDivide", [](GgufSpec& s) { s.SetU32("llama.attention.head_count_kv", 3); },
     "head_count_kv is 3, a divisor of llama.attention.head_count (2) is wanted"},
    {"ValuesOfAnotherLength", [](GgufSpec& s) { s.SetU32("llama.attention.value_length", 16); },
     "value_length is 16, only the key's length (8) is possible", kUnsupported},
    {"PartialRotation", [](GgufSpec& s) { s.SetU32("llama.rope.dimension_count", 4); },
     "llama.rope.dimension_count is 4, only the key's length (8) is possible", kUnsupported},
    {"ZeroContext", [](GgufSpec& s) { s.SetU32("llama.context_length", 0); },
     "llama.context_length is 0"},
    {"NoEps", [](GgufSpec& s) { s.Remove("llama.attention.layer_norm_rms_epsilon"); },
     "layer_norm_rms_epsilon is missing"},
    {"NanEps", [](GgufSpec& s) { s.SetF32("llama.attention.layer_norm_rms_epsilon", kNan); },
     "layer_norm_rms_epsilon is nan"},
    {"NanTheta", [](GgufSpec& s) { s.SetF32("llama.rope.freq_base", kNan); }, "freq_base is nan"},
    {"InfiniteTheta",
     [](GgufSpec& s) { s.SetF32("llama.rope.freq_base", std::numeric_limits<float>::infinity()); },
     "freq_base is inf"},
    {"Yarn", [](GgufSpec& s) { s.SetString("llama.rope.scaling.type", "yarn"); },
     "llama.rope.scaling.type is \"yarn\"", kUnsupported},
    {"ZeroFactor", [](GgufSpec& s) { s.SetF32("llama.rope.scaling.factor", 0.0f); },
     "llama.rope.scaling.factor is 0"},
    {"AttentionFactor", [](GgufSpec& s) { s.SetF32("llama.rope.scaling.attn_factor", 2.0f); },
     "attn_factor is 2", kUnsupported},
    {"TokenListShorterThanTheEmbedding",
     [](GgufSpec& s) {
       s.SetStrings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
     },
     "the length of tokenizer.ggml.tokens is 3, but the number of rows of token_embd.weight is 5"},
    {"TokenListLongerThanTheEmbedding",
     [](GgufSpec& s) {
       s.SetStrings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f"});
     },
     "the length of tokenizer.ggml.tokens is 6, but the number of rows of token_embd.weight is 5"},
    {"VocabSizeAtOdds", [](GgufSpec& s) { s.SetU32("llama.vocab_size", 4); },
     "the length of tokenizer.ggml.tokens is 5, but llama.vocab_size is 4"},
    {"TokensAsText", [](GgufSpec& s) { s.SetString("tokenizer.ggml.tokens", "abc"); },
     "tokenizer.ggml.tokens is a string, an array of strings is wanted"},
    {"NoVocabularyAtAll",
     [](GgufSpec& s) {
       s.Remove("tokenizer.ggml.tokens");
       s.tensors.clear();
     },
     "tokenizer.ggml.tokens is missing"},
    {"EosOutOfRange", [](GgufSpec& s) { s.SetU32("tokenizer.ggml.eos_token_id", 5); },
     "tokenizer.ggml.eos_token_id is 5, 0 to 4 is possible"},
    {"FreqFactorsOfAnotherLength",
     [](GgufSpec& s) {
       s.tensors.push_back(FreqFactors({1, 1, 1}));
     },
     "rope_freqs.weight is F32 [3], F32 [4] is wanted"},
    {"FreqFactorOfZero",
     [](GgufSpec& s) {
       s.tensors.push_back(FreqFactors({1, 0, 1, 1}));
     },
     "an element of rope_freqs.weight is 0"},
};

INSTANTIATE_TEST_SUITE_P(All, LlamaConfigGgufDamage, ::testing::ValuesIn(kGgufDamages),
                         testing::DamageName());

TEST(RopeInverseFrequencies, FollowTheDefinition) {
  LlamaConfig config;
  config.head_dim = 8;
  config.rope.theta = 10000.0;
  const std::vector<double> plain = RopeInverseFrequencies(config);
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_DOUBLE_EQ(plain[0], 1.0);
  EXPECT_DOUBLE_EQ(plain[1], 0.1);
  EXPECT_DOUBLE_EQ(plain[3], 0.001);

  config.rope.scaling = RopeConfig::Scaling::kLinear;
  config.rope.factor = 4.0;
  EXPECT_DOUBLE_EQ(RopeInverseFrequencies(config)[1], 0.025);

  config.rope.scaling = RopeConfig::Scaling::kNone;
  config.rope.freq_factors = {1.0f, 2.0f, 4.0f, 8.0f};
  EXPECT_DOUBLE_EQ(RopeInverseFrequencies(config)[3], 0.001 / 8);
}

TEST(RopeInverseFrequencies, BlendBetweenShortAndLongWavelengths) {
  LlamaConfig config;
  config.head_dim = 8;
  config.rope.theta = 10000.0;
  config.rope.scaling = RopeConfig::Scaling::kLlama3;
  config.rope.factor = 8.0;
  config.rope.low_freq_factor = 1.0;
  config.rope.high_freq_factor = 4.0;
  // 2 waves of pair 1 fit the original context: a third of the way from low to high.
  config.rope.original_max_positions = 126;  // 2.005 * 2 pi / 0.1
  const std::vector<double> scaled = RopeInverseFrequencies(config);
  EXPECT_DOUBLE_EQ(scaled[0], 1.0);
  const double blend = (126 * 0.1 / (2 * std::numbers::pi) - 1.0) / 3.0;
  EXPECT_NEAR(scaled[1], (1 - blend) * 0.1 / 8 + blend * 0.1, 1e-15);
  EXPECT_DOUBLE_EQ(scaled[2], 0.01 / 8);
  EXPECT_DOUBLE_EQ(scaled[3], 0.001 / 8);
}

TEST(LlamaConfig, ReadsTheTestModels) {
  const auto read = [](const std::string& name) {
    return ReadJsonObject(testing::TestModel(name) + "/config.json").and_then(LlamaConfigFromHf);
  };
  const auto llama3 = read("tiny-bf16-sharded");
  ASSERT_TRUE(llama3.has_value()) << llama3.error().message;
  EXPECT_EQ(llama3->rope.scaling, RopeConfig::Scaling::kLlama3);
  EXPECT_EQ(llama3->rope.original_max_positions, 64);
  const auto linear = read("tiny-f32-hd128");
  ASSERT_TRUE(linear.has_value()) << linear.error().message;
  EXPECT_EQ(linear->rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_TRUE(read("tiny-f16-tied")->tie_word_embeddings);
  EXPECT_EQ(read("tiny-words-hf")->num_layers, 5);
}

}  // namespace
}  // namespace kvick
