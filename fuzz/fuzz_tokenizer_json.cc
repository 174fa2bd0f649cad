// Makes a tokenizer of a tokenizer.json and, after a zero byte, a tokenizer_config.json.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/tokenizer_hf.h"
#include "fuzz.h"

namespace kvick {

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const auto tokenizer_json =
      ParseJson(input.substr(0, end), "tokenizer.json", JsonNumbers::kPython);
  if (!tokenizer_json) return 0;
  nlohmann::json config;
  if (end < input.size()) {
    config = ParseJson(input.substr(end + 1), "tokenizer_config.json", JsonNumbers::kPython)
                 .value_or(nullptr);
  }
  const auto tokenizer = TokenizerFromHfJson(*tokenizer_json, config);
  if (!tokenizer) return 0;
  tokenizer->Decode(tokenizer->Encode("ab  12<s>aab\xC3\xA9\xFF"));
  for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) tokenizer->TokenBytes(id);
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  const std::string byte_level = R"({
"added_tokens": [{"id": 6, "content": "<s>", "special": true},
                 {"id": 7, "content": "12", "special": false}],
"normalizer": {"type": "NFC"},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": " ?\\p{L}+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated"},
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
"post_processor": {"type": "ByteLevel"},
"model": {"type": "BPE", "ignore_merges": true, "merges": ["a b", "a ab"],
  "vocab": {"a": 0, "b": 1, "ab": 2, "aab": 3, "\u0120": 4, "1": 5}}})";
  const std::string space_markers = R"({
"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
"normalizer": {"type": "Sequence", "normalizers": [
  {"type": "Prepend", "prepend": "\u2581"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
"post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
  "special_tokens": {"<s>": {"ids": [1]}}},
"model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
  "merges": [["a", "b"], ["\u2581", "ab"]],
  "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "\u2581": 3, "a": 4, "b": 5, "ab": 6,
            "\u2581ab": 7}}})";
  const std::string metaspace = R"({
"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"},
"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  const std::string config = R"({"bos_token": {"content": "<s>"}, "eos_token": "b",
"add_bos_token": true, "add_eos_token": true})";
  const std::string separator(1, '\0');
  return {byte_level, byte_level + separator + config, space_markers + separator + config,
          metaspace + separator + config};
}

}  // namespace kvick
