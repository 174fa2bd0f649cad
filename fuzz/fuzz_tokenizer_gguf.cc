// Makes a tokenizer of the metadata of a GGUF file.

#include <span>
#include <string>
#include <vector>

#include "formats/gguf_testing.h"
#include "formats/tokenizer_gguf.h"
#include "fuzz.h"

namespace kvick {
namespace {

using testing::GgufSpec;

GgufSpec Spec(std::string_view model, const std::vector<std::string>& pieces,
              const std::vector<int32_t>& types) {
  GgufSpec spec;
  spec.SetString("tokenizer.ggml.model", model);
  spec.SetStrings("tokenizer.ggml.tokens", pieces);
  std::string numbers;
  for (int32_t type : types) numbers += testing::Packed(type);
  spec.Set("tokenizer.ggml.token_type", GgufType::kArray,
           testing::PackedArray(GgufType::kI32, types.size(), numbers));
  spec.SetU32("tokenizer.ggml.bos_token_id", 1);
  spec.SetU32("tokenizer.ggml.eot_token_id", 2);
  return spec;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tokenizer =
      GgufFile::Parse(std::as_bytes(std::span(data, size))).and_then(TokenizerFromGguf);
  if (!tokenizer) return 0;
  if (const auto ids = tokenizer->Encode("ab  12<s>aab\xC3\xA9\xFF")) tokenizer->Decode(*ids);
  for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) tokenizer->TokenBytes(id);
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  GgufSpec sentence_piece = Spec(
      "llama", {"<unk>", "<s>", "<0xFF>", "a", "b", "ab", "\xE2\x96\x81"}, {2, 3, 6, 1, 1, 1, 4});
  std::string scores;
  for (int i = 0; i < 7; ++i) scores += testing::Packed(static_cast<float>(-i));
  sentence_piece.Set("tokenizer.ggml.scores", GgufType::kArray,
                     testing::PackedArray(GgufType::kF32, 7, scores));
  GgufSpec gpt2 = Spec("gpt2", {"a", "<s>", "b", "ab", "\xC4\xA0"}, {1, 3, 1, 1, 1});
  gpt2.SetString("tokenizer.ggml.pre", "llama-bpe");
  gpt2.SetStrings("tokenizer.ggml.merges", {"a b"});
  GgufSpec unigram = sentence_piece;
  unigram.SetString("tokenizer.ggml.model", "t5");
  unigram.Set("tokenizer.ggml.add_space_prefix", GgufType::kBool, "\x01");
  unigram.Set("tokenizer.ggml.precompiled_charsmap", GgufType::kArray,
              testing::PackedArray(GgufType::kU8, 10, std::string("\x04\0\0\0\0\0\0\0a\0", 10)));
  return {sentence_piece.Build(), gpt2.Build(), unigram.Build()};
}

}  // namespace kvick
