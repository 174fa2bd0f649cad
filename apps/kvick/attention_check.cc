#include "attention_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/attention_ref.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/exec.h"
#include "base/isa.h"

namespace kvick::cli {
namespace {

// How far a head's output may be off. The worst that rounding could do would hide whole faults:
// keys and values are random, so are the errors, and independent ones add up as their squares do.
// With the unit roundoffs
//   u_q of the queries, u_p of the weights p (on tiles 2^-16 and 2^-8, else 2^-24)
// and a = max_s scale * sum_d |q k|, a score is off by about a * (u_q / sqrt(D) + 2^-24), a weight
// by that and u_p + 2^-22 (of exp) of its size, and the sum over s by that times sqrt(sum_s p^2)
// and by 2^-24 of its own roundings, of sum_s p |v|. Ten times that is never reached by chance.
struct Bound {
  double relative;                // of magnitude
  std::vector<double> magnitude;  // [D]: sum_s p |v|
};

// The keys and values of one head of the positions that the last token of a view sees.
struct SeenRows {
  const KvView& kv;
  int64_t layer;
  int64_t kv_head;
  int64_t begin;
};

Bound BoundOfHead(const SeenRows& seen, const float* q, bool on_tiles) {
  const auto& [kv, layer, kv_head, begin] = seen;
  const int64_t head_dim = kv.layout.head_dim;
  const double root_dim = std::sqrt(static_cast<double>(head_dim));
  std::vector<float> row(static_cast<size_t>(head_dim));
  std::vector<double> weights(static_cast<size_t>(kv.length));
  double largest = 0;
  for (int64_t s = begin; s < kv.length; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Key(layer, kv_head, s), head_dim, row.data());
    double dot = 0, absolute = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      const double product = static_cast<double>(q[d]) * row[static_cast<size_t>(d)];
      dot += product;
      absolute += std::abs(product);
    }
    weights[static_cast<size_t>(s)] = dot / root_dim;
    largest = std::max(largest, absolute / root_dim);
  }
  const auto first = weights.begin() + begin;
  const double max = *std::max_element(first, weights.end());
  double sum = 0, squares = 0;
  std::for_each(first, weights.end(), [&](double& w) { sum += w = std::exp(w - max); });
  Bound bound{0, std::vector<double>(static_cast<size_t>(head_dim), 0.0)};
  for (int64_t s = begin; s < kv.length; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Value(layer, kv_head, s), head_dim, row.data());
    const double weight = weights[static_cast<size_t>(s)] / sum;
    squares += weight * weight;
    for (size_t d = 0; d < row.size(); ++d) bound.magnitude[d] += weight * std::abs(row[d]);
  }
  const double score_error = largest * ((on_tiles ? 0x1p-16 : 0x1p-24) / root_dim + 0x1p-24);
  const double weight_error = score_error + (on_tiles ? 0x1p-8 : 0x1p-24) + 0x1p-22;
  bound.relative = 10 * (weight_error * std::sqrt(squares) + 0x1p-24);
  return bound;
}

}  // namespace

Status CheckAttention(const AttentionConfig& config, int64_t layer, const KvView& kv,
                      std::span<const float> q, std::span<const float> out) {
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(config.exec));
  const bool on_tiles = UsesTiles(exec.isa, config.dtype);
  const int64_t group = config.num_heads / config.num_kv_heads, dim = config.head_dim;
  AttentionConfig one_a_group = config;
  one_a_group.num_heads = config.num_kv_heads;
  std::vector<float> queries;
  const auto head_of = [&](int64_t kv_head) { return kv_head * group + kv_head % group; };
  for (int64_t kv_head = 0; kv_head < config.num_kv_heads; ++kv_head) {
    const float* row = q.data() + head_of(kv_head) * dim;
    queries.insert(queries.end(), row, row + dim);
  }
  const int64_t window = config.windows.empty() ? 0 : config.windows[static_cast<size_t>(layer)];
  const int64_t begin = window > 0 ? std::max<int64_t>(0, kv.length - window) : 0;
  const AttentionQuery query{kv, 1};
  const std::vector<double> expected = AttentionRef(one_a_group, layer, {&query, 1}, queries);
  for (int64_t kv_head = 0; kv_head < config.num_kv_heads; ++kv_head) {
    const Bound bound =
        BoundOfHead({kv, layer, kv_head, begin}, queries.data() + kv_head * dim, on_tiles);
    for (int64_t d = 0; d < dim; ++d) {
      const float got = out[static_cast<size_t>(head_of(kv_head) * dim + d)];
      const double wanted = expected[static_cast<size_t>(kv_head * dim + d)];
      const double most = bound.relative * bound.magnitude[static_cast<size_t>(d)];
      if (std::abs(got - wanted) <= most) continue;
      return Fail(ErrorCode::kInternal,
                  "attention: head {} gives {} at {}, the reference {}, and {} is the most that "
                  "rounding explains",
                  head_of(kv_head), got, d, wanted, most);
    }
  }
  return {};
}

}  // namespace kvick::cli
