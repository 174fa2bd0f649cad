// Parses a config.json, or a generation_config.json, and makes a model config of it.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "fuzz.h"
#include "model/arch/read_spec.h"
#include "model/tiny_llama_testing.h"

namespace kvick {

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = ParseJson(text, "config.json", JsonNumbers::kPython);
  if (!json) return 0;
  const auto config = ModelSpecFromHf(*json);
  if (config) {
    for (const RopeSpec& rope : config->ropes) RopeInverseFrequencies(rope);
  }
  (void)EosIdsFromHf(*json, config ? config->vocab_size : 5);
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  nlohmann::json json = testing::TinyConfigJson();
  const std::string plain = json.dump();
  json["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000.0},
                             {"factor", 8.0},           {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};
  json["eos_token_id"] = {2, 3};
  const std::string llama3 = json.dump();
  json["model_type"] = "mistral";
  json["sliding_window"] = 4096;
  std::string mistral = json.dump();
  mistral.insert(1, R"("a":[Infinity,-Infinity,NaN,"NaN"],)");
  return {plain, llama3, mistral};
}

}  // namespace kvick
