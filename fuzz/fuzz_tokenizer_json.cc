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
  if (const auto ids = tokenizer->Encode("ab  12<s>aab\xC3\xA9\xFF")) tokenizer->Decode(*ids);
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
  const std::string steps = R"({
"added_tokens": [{"id": 1, "content": "<s>", "special": true, "lstrip": true, "rstrip": true},
                 {"id": 7, "content": "AAB", "normalized": true, "single_word": true}],
"normalizer": {"type": "Sequence", "normalizers": [
  {"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFKC"}, {"type": "Lowercase"},
  {"type": "Strip", "strip_left": true, "strip_right": true},
  {"type": "Replace", "pattern": {"Regex": "[1-3]{2}"}, "content": " b"}]},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Whitespace"},
  {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "MergedWithNext", "invert": true},
  {"type": "WhitespaceSplit"}, {"type": "ByteLevel", "add_prefix_space": true}]},
"post_processor": {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["<s>", 1]},
"decoder": {"type": "Sequence", "decoders": [
  {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "x"},
  {"type": "Metaspace", "replacement": "\u0120"}, {"type": "Fuse"},
  {"type": "Strip", "content": " ", "start": 2, "stop": 0}]},
"model": {"unk_token": "u", "vocab": {"u": 0, "<s>": 1, "b": 2, "a": 3, "aa": 4, "\u0120": 5},
  "merges": ["a a"]}})";
  const std::string config = R"({"bos_token": {"content": "<s>"}, "eos_token": "b",
"add_bos_token": true, "add_eos_token": true, "tokenizer_class": "LlamaTokenizer",
"added_tokens_decoder": {"4": {"content": "ab", "lstrip": true}, "9": {"content": "  "}}})";
  const std::string separator(1, '\0');
  const std::string unigram = R"({
"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAEAAAAAQAAYQA="},
"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
"decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
  "vocab": [["<unk>", 0], ["<s>", 0], ["\u2581", -3.5], ["a", -3], ["ab", -4], ["<0xC3>", -9]]}})";
  return {byte_level,
          byte_level + separator + config,
          space_markers + separator + config,
          metaspace + separator + config,
          steps,
          steps + separator + config,
          unigram};
}

}  // namespace kvick
