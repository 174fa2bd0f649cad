#ifndef KVICK_FORMATS_SENTENCEPIECE_MODEL_H_
#define KVICK_FORMATS_SENTENCEPIECE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// What a tokenizer.model holds that decides about ids: a ModelProto of SentencePiece.
//
// Read by hand: of a schema of some 60 fields eight matter here, and libprotobuf would bring a code
// generator and a library of 3 MB for them.
// Source  https://github.com/google/sentencepiece, src/sentencepiece_model.proto
struct SentencePieceModel {
  enum class PieceType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  enum class Kind : uint8_t { kUnigram = 1, kBpe = 2 };

  struct Piece {
    std::string text;  // UTF-8, not empty
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  // Errors  corrupt: not a ModelProto, a piece that is empty or not UTF-8, a score that is not
  //         finite, an unk_id that is no piece;
  //         unsupported: a model of words or characters, a piece of more than 1024 bytes
  static Result<SentencePieceModel> Parse(std::span<const std::byte> bytes,
                                          std::string_view source);

  std::vector<Piece> pieces;
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  int32_t unknown_id = 0;
  std::string unknown_piece = "<unk>";
  std::string precompiled_charsmap;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_SENTENCEPIECE_MODEL_H_
