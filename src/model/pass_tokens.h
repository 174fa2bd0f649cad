#ifndef KVICK_MODEL_PASS_TOKENS_H_
#define KVICK_MODEL_PASS_TOKENS_H_

#include <cstdint>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/mapped_array.h"
#include "kvick/status.h"

namespace kvick {

// The tokens of a forward pass: ids, positions, lengths of their sequences, and which of them
// logits are computed for. Memory for the most tokens of a pass is mapped once; what was never used
// of it costs nothing.
class PassTokens {
 public:
  // Errors: exhausted.
  static Result<PassTokens> Create(int64_t max_tokens) {
    constexpr auto kBacking = Backing::kOnDemand;
    KVICK_ASSIGN_OR_RETURN(auto ids,
                           MappedArray<int32_t>::Create("model: token ids", max_tokens, kBacking));
    KVICK_ASSIGN_OR_RETURN(auto positions,
                           MappedArray<int64_t>::Create("model: positions", max_tokens, kBacking));
    KVICK_ASSIGN_OR_RETURN(
        auto rows, MappedArray<int32_t>::Create("model: rows of logits", max_tokens, kBacking));
    KVICK_ASSIGN_OR_RETURN(auto lengths,
                           MappedArray<int64_t>::Create("model: lengths", max_tokens, kBacking));
    return PassTokens(std::move(ids), std::move(positions), std::move(lengths), std::move(rows));
  }

  void Clear() { num_tokens_ = num_output_rows_ = 0; }

  // `length`: tokens of its whole sequence. REQUIRES: fewer than max_tokens so far.
  void Add(int32_t id, int64_t position, int64_t length) {
    KVICK_CHECK(num_tokens_ < ids_.size());
    ids_[num_tokens_] = id;
    lengths_[num_tokens_] = length;
    positions_[num_tokens_++] = position;
  }
  // Asks for the logits of the token that was added last.
  void WantLogits() { output_rows_[num_output_rows_++] = static_cast<int32_t>(num_tokens_ - 1); }

  std::span<const int32_t> ids() const { return {&ids_[0], Size(num_tokens_)}; }
  std::span<const int64_t> positions() const { return {&positions_[0], Size(num_tokens_)}; }
  std::span<const int64_t> lengths() const { return {&lengths_[0], Size(num_tokens_)}; }
  // Indices of tokens, ascending.
  std::span<const int32_t> output_rows() const {
    return {&output_rows_[0], Size(num_output_rows_)};
  }

 private:
  PassTokens(MappedArray<int32_t> ids, MappedArray<int64_t> positions, MappedArray<int64_t> lengths,
             MappedArray<int32_t> rows)
      : ids_(std::move(ids)),
        positions_(std::move(positions)),
        lengths_(std::move(lengths)),
        output_rows_(std::move(rows)) {}

  static size_t Size(int64_t num) { return static_cast<size_t>(num); }

  MappedArray<int32_t> ids_;
  MappedArray<int64_t> positions_;
  MappedArray<int64_t> lengths_;
  MappedArray<int32_t> output_rows_;
  int64_t num_tokens_ = 0;
  int64_t num_output_rows_ = 0;
};

}  // namespace kvick

#endif  // KVICK_MODEL_PASS_TOKENS_H_
