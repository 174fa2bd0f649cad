// Encodes any bytes as text. Decoding the tokens, all at once or one by one, gives the same bytes.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "formats/piece_spelling.h"
#include "formats/tokenizer.h"
#include "formats/tokenizer_testing.h"
#include "formats/utf8_stream.h"
#include "fuzz.h"

namespace kvick {
namespace {

void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view text, std::string_view expected) {
  const std::vector<int32_t> ids =
      *tokenizer.Encode(text, {.add_special = false, .parse_special = false});
  if (tokenizer.Decode(ids) != expected) std::abort();
  Detokenizer detokenizer(tokenizer, DecodeFrom::kTextStart);
  Utf8Stream stream(InvalidUtf8::kKeep);
  std::string streamed;
  for (int32_t id : ids) streamed += stream.Push(detokenizer.Append(id));
  if (streamed + stream.Finish() != expected) std::abort();
  if (!tokenizer.Encode(text)) std::abort();
}

std::string SpacesForMarkers(std::string text) {
  for (size_t at = 0; (at = text.find(kSpaceMarker, at)) != std::string::npos;) {
    text.replace(at, kSpaceMarker.size(), " ");
  }
  return text;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer byte_level = *Tokenizer::Create(testing::SmallByteLevel());
  static const Tokenizer sentence_piece = *Tokenizer::Create(testing::SmallSentencePiece());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckRoundTrip(byte_level, text, text);
  CheckRoundTrip(sentence_piece, text, SpacesForMarkers(std::string(text)));
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {
      "abc aabbcc  a1234 \n\n  bc",
      "</s><|end|><tool>a<tool>",
      "\xE2\x96\x81"
      "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xC3",
      std::string(300, 'a') + std::string(300, ' '),
  };
}

}  // namespace kvick
