// Makes a tokenizer of a SentencePiece model, for each class that may have one.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/sentencepiece_testing.h"
#include "formats/tokenizer_sentencepiece.h"
#include "fuzz.h"

namespace kvick {

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = SentencePieceModel::Parse(std::as_bytes(std::span(data, size)), "model");
  if (!model) return 0;
  for (const char* name : {"LlamaTokenizer", "GemmaTokenizer"}) {
    const auto tokenizer = TokenizerFromSentencePieceModel(*model, {{"tokenizer_class", name}});
    if (!tokenizer) continue;
    if (const auto ids = tokenizer->Encode("ab  12<s>aab\xC3\xA9\xFF")) tokenizer->Decode(*ids);
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  testing::SentencePieceSpec bpe = testing::SmallSentencePieceSpec();
  testing::SentencePieceSpec unigram = bpe;
  unigram.model_type = 1;
  testing::SentencePieceSpec bytes = bpe;
  bytes.pieces.push_back({"<0xFF>", 0, 6});
  bytes.pieces.push_back({"<0x09>", 0, 6});
  bytes.precompiled_charsmap = "abcd";
  return {bpe.Build(), unigram.Build(), bytes.Build()};
}

}  // namespace kvick
