#include "bench_data.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random_numbers.h"
#include "base/threads.h"
#include "kvick/tensor.h"

namespace kvick::cli {
namespace {

// Keys and values are windows on one row of numbers, a token's kTokenStride behind the one before:
// making them costs a fraction of writing them.
constexpr int64_t kTokenStride = 16;
constexpr int64_t kNumOffsets = 4096;  // where a layer's first token may begin

class RandomRows {
 public:
  RandomRows(const KvLayout& layout, int64_t num_tokens)
      : heads_(layout.num_kv_heads), dim_(layout.head_dim), num_tokens_(num_tokens) {
    numbers_.resize(static_cast<size_t>(num_tokens * kTokenStride + heads_ * dim_ + kNumOffsets));
    RandomNumbers{DType::kF32, static_cast<int64_t>(numbers_.size())}.WriteTo(
        reinterpret_cast<std::byte*>(numbers_.data()));
  }

  // [T, K, D], others for another index.
  TensorView operator[](int64_t index) const {
    TensorView view =
        DenseF32(numbers_.data() + index * 97 % kNumOffsets, {num_tokens_, heads_, dim_});
    view.strides[0] = kTokenStride;
    return view;
  }

 private:
  int64_t heads_, dim_, num_tokens_;
  std::vector<float> numbers_;
};

}  // namespace

Status RandomTokens::AppendTo(KvCache& cache) const {
  if (num_tokens == 0) return {};
  std::vector<WritePlan> plans;
  for (const SequenceId sequence : sequences) {
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache.Reserve(sequence, num_tokens));
    plans.push_back(std::move(plan));
  }
  const int64_t num_layers = cache.layout().num_layers;
  const RandomRows rows(cache.layout(), num_tokens);
  ParallelFor(num_threads, static_cast<int64_t>(plans.size()), [&](int64_t i, int) {
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      const int64_t index = 2 * (i * num_layers + layer);
      const Status written =
          cache.Write(plans[static_cast<size_t>(i)], layer, rows[index], rows[index + 1]);
      KVICK_CHECK(written.has_value());
    }
  });
  for (WritePlan& plan : plans) KVICK_RETURN_IF_ERROR(cache.Commit(std::move(plan)));
  return {};
}

std::string Counted(int64_t num, std::string_view noun) {
  return fmt::format("{} {}{}", num, noun, num == 1 ? "" : "s");
}

std::string LayoutName(int64_t block_tokens) {
  return block_tokens == 0 ? "contiguous" : fmt::format("paged {}", block_tokens);
}

}  // namespace kvick::cli
