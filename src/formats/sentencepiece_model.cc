#include "formats/sentencepiece_model.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "formats/protobuf_field.h"
#include "formats/quoted.h"
#include "formats/range.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

using Piece = SentencePieceModel::Piece;

constexpr size_t kMaxPieceBytes = 1024;

Status CheckPiece(const Piece& piece, std::string_view label) {
  if (piece.text.empty() || !IsUtf8(piece.text)) {
    return Fail(ErrorCode::kCorrupt, "{}: expected UTF-8 text, got {}", label, Quoted(piece.text));
  }
  if (piece.text.size() > kMaxPieceBytes) {
    return Fail(ErrorCode::kUnsupported, "{}: expected at most {} bytes, got {}", label,
                kMaxPieceBytes, piece.text.size());
  }
  if (!std::isfinite(piece.score)) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a finite score, got {}", label, piece.score);
  }
  return {};
}

Status ReadPieceField(const ProtobufField& field, std::string_view label, Piece& piece) {
  if (field.number == 1) {
    KVICK_ASSIGN_OR_RETURN(piece.text, field.String(label));
  } else if (field.number == 2) {
    KVICK_ASSIGN_OR_RETURN(piece.score, field.Float(label));
  } else if (field.number == 3) {
    KVICK_ASSIGN_OR_RETURN(const int64_t type, field.Int(label));
    KVICK_RETURN_IF_ERROR(CheckRange(fmt::format("{}: type", label), type, IntRange{1, 6}));
    piece.type = static_cast<SentencePieceModel::PieceType>(type);
  }
  return {};
}

Result<Piece> ReadPiece(std::span<const std::byte> message, std::string_view label) {
  Piece piece;
  KVICK_RETURN_IF_ERROR(ForEachProtobufField(message, label, [&](const ProtobufField& field) {
    return ReadPieceField(field, label, piece);
  }));
  KVICK_RETURN_IF_ERROR(CheckPiece(piece, label));
  return piece;
}

Status ReadKind(const ProtobufField& field, const std::string& label, SentencePieceModel& model) {
  KVICK_ASSIGN_OR_RETURN(const int64_t kind, field.Int(label));
  if (kind != 1 && kind != 2) {
    return Fail(ErrorCode::kUnsupported, "{}: expected 1 (Unigram) or 2 (BPE), got {}", label,
                kind);
  }
  model.kind = static_cast<SentencePieceModel::Kind>(kind);
  return {};
}

Status ReadTrainerSpec(std::span<const std::byte> message, std::string_view source,
                       SentencePieceModel& model) {
  constexpr uint64_t kModelType = 3, kByteFallback = 35, kUnknownId = 40, kUnknownPiece = 45;
  const auto label = [&](std::string_view name) {
    return fmt::format("{}: trainer_spec.{}", source, name);
  };
  return ForEachProtobufField(message, source, [&](const ProtobufField& field) -> Status {
    if (field.number == kModelType) return ReadKind(field, label("model_type"), model);
    if (field.number == kByteFallback) {
      KVICK_ASSIGN_OR_RETURN(const int64_t value, field.Int(label("byte_fallback")));
      model.byte_fallback = value != 0;
    } else if (field.number == kUnknownId) {
      constexpr IntRange kIds{0, std::numeric_limits<int32_t>::max()};
      KVICK_ASSIGN_OR_RETURN(const int64_t id, field.Int(label("unk_id")));
      KVICK_RETURN_IF_ERROR(CheckRange(label("unk_id"), id, kIds));
      model.unknown_id = static_cast<int32_t>(id);
    } else if (field.number == kUnknownPiece) {
      KVICK_ASSIGN_OR_RETURN(model.unknown_piece, field.String(label("unk_piece")));
    }
    return {};
  });
}

Status ReadNormalizerSpec(std::span<const std::byte> message, std::string_view source,
                          SentencePieceModel& model) {
  constexpr uint64_t kPrecompiledCharsmap = 2;
  return ForEachProtobufField(message, source, [&](const ProtobufField& field) -> Status {
    if (field.number != kPrecompiledCharsmap) return {};
    const std::string label = fmt::format("{}: normalizer_spec.precompiled_charsmap", source);
    KVICK_ASSIGN_OR_RETURN(model.precompiled_charsmap, field.String(label));
    return {};
  });
}

Status ReadField(const ProtobufField& field, std::string_view source, SentencePieceModel& model) {
  constexpr uint64_t kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3;
  if (field.number < kPieces || field.number > kNormalizerSpec) return {};
  KVICK_ASSIGN_OR_RETURN(const auto message, field.Bytes(source));
  if (field.number == kTrainerSpec) return ReadTrainerSpec(message, source, model);
  if (field.number == kNormalizerSpec) return ReadNormalizerSpec(message, source, model);
  const std::string label = fmt::format("{}: pieces[{}]", source, model.pieces.size());
  KVICK_ASSIGN_OR_RETURN(Piece piece, ReadPiece(message, label));
  model.pieces.push_back(std::move(piece));
  return {};
}

}  // namespace

Result<SentencePieceModel> SentencePieceModel::Parse(std::span<const std::byte> bytes,
                                                     std::string_view source) {
  SentencePieceModel model;
  KVICK_RETURN_IF_ERROR(ForEachProtobufField(
      bytes, source, [&](const ProtobufField& field) { return ReadField(field, source, model); }));
  const auto num_pieces = static_cast<int64_t>(model.pieces.size());
  KVICK_RETURN_IF_ERROR(CheckRange(fmt::format("{}: trainer_spec.unk_id", source), model.unknown_id,
                                   IntRange{0, num_pieces - 1}));
  return model;
}

}  // namespace kvick
