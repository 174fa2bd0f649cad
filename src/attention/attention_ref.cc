#include "attention/attention_ref.h"

#include <algorithm>
#include <cmath>

#include "base/dtype.h"

namespace kvick {
namespace {

// Keys and values of one head at positions [begin, end).
struct VisibleRows {
  const KvView* kv;
  int64_t layer;
  int64_t kv_head;
  int64_t begin, end;
};

// out[d] = sum_s softmax_s(score[s]) * v[s][d],  score[s] = scale * <q, k[s]>, or soft-capped.
void AttendRow(const AttentionConfig& config, const VisibleRows& rows, const float* q,
               double* out) {
  const KvView& kv = *rows.kv;
  const int64_t head_dim = kv.layout.head_dim;
  const double scale =
      config.scale != 0 ? config.scale : 1 / std::sqrt(static_cast<double>(head_dim));
  const double cap = config.soft_cap;
  std::vector<float> row(head_dim);
  std::vector<double> weights;
  for (int64_t s = rows.begin; s < rows.end; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Key(rows.layer, rows.kv_head, s), head_dim, row.data());
    double dot = 0;
    for (int64_t d = 0; d < head_dim; ++d) dot += static_cast<double>(q[d]) * row[d];
    weights.push_back(cap > 0 ? cap * std::tanh(scale * dot / cap) : scale * dot);
  }
  const double max = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - max);
  for (int64_t s = rows.begin; s < rows.end; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Value(rows.layer, rows.kv_head, s), head_dim, row.data());
    const double weight = weights[static_cast<size_t>(s - rows.begin)] / sum;
    for (int64_t d = 0; d < head_dim; ++d) out[d] += weight * row[d];
  }
}

}  // namespace

std::vector<double> AttentionRef(const AttentionConfig& config, int64_t layer,
                                 std::span<const AttentionQuery> queries,
                                 std::span<const float> q) {
  const int64_t head_dim = config.head_dim;
  const int64_t window = config.windows.empty() ? 0 : config.windows[static_cast<size_t>(layer)];
  const int64_t heads_per_group = config.num_heads / config.num_kv_heads;
  std::vector<double> out(q.size(), 0.0);
  int64_t row = 0;  // of [T * H, D]
  for (const AttentionQuery& query : queries) {
    for (int64_t i = 0; i < query.num_tokens; ++i) {
      const int64_t end = query.kv.length - query.num_tokens + i + 1;
      const int64_t begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
      for (int64_t head = 0; head < config.num_heads; ++head, ++row) {
        AttendRow(config, {&query.kv, layer, head / heads_per_group, begin, end},
                  q.data() + row * head_dim, out.data() + row * head_dim);
      }
    }
  }
  return out;
}

}  // namespace kvick
