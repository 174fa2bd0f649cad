#ifndef KVICK_FORMATS_SENTENCEPIECE_TESTING_H_
#define KVICK_FORMATS_SENTENCEPIECE_TESTING_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// A writer of tokenizer.model for tests and fuzzers. It checks nothing, so that it can write every
// kind of damage.
namespace kvick::testing {

struct SentencePieceSpec {
  struct Piece {
    std::string text;
    float score = 0;
    uint64_t type = 1;
  };

  std::vector<Piece> pieces;
  uint64_t model_type = 2;  // BPE
  uint64_t unknown_id = 0;
  std::string precompiled_charsmap;
  std::string rest;  // bytes behind all fields

  std::string Build() const {
    std::string file;
    for (const Piece& piece : pieces) {
      std::string message = Bytes(1, piece.text) + '\x15';
      const auto bits = std::bit_cast<uint32_t>(piece.score);
      for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(bits >> shift);
      file += Bytes(1, message + Number(3, piece.type));
    }
    file += Bytes(2, Number(3, model_type) + Number(35, 1) + Number(40, unknown_id));
    file += Bytes(3, precompiled_charsmap.empty() ? "" : Bytes(2, precompiled_charsmap));
    return file + rest;
  }

 private:
  static std::string Varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
    return bytes + static_cast<char>(value);
  }
  static std::string Number(uint64_t field, uint64_t value) {
    return Varint(field << 3) + Varint(value);
  }
  static std::string Bytes(uint64_t field, std::string_view bytes) {
    return Varint(field << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
  }
};

// <unk> 0, <s> 1, </s> 2, then a space marker 3, a 4, b 5, c 6, ab 7, marker + ab 8.
inline SentencePieceSpec SmallSentencePieceSpec() {
  SentencePieceSpec spec;
  spec.pieces = {{"<unk>", 0, 2},
                 {"<s>", 0, 3},
                 {"</s>", 0, 3},
                 {"\xE2\x96\x81", -9},
                 {"a", -9},
                 {"b", -9},
                 {"c", -9},
                 {"ab", -1},
                 {"\xE2\x96\x81"
                  "ab",
                  -2}};
  return spec;
}

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_SENTENCEPIECE_TESTING_H_
