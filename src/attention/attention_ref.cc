#include "attention/attention_ref.h"

#include <algorithm>
#include <cmath>

#include "base/dtype.h"

namespace kvick {
namespace {

// out[d] = sum_s softmax_s(scale * <q, k[s]>) * v[s][d] over positions [0, num_visible).
void AttendRow(const KvView& kv, int64_t layer, int64_t kv_head, int64_t num_visible, double scale,
               const float* q, double* out) {
  const int64_t head_dim = kv.layout.head_dim;
  std::vector<float> row(head_dim);
  std::vector<double> weights(num_visible);
  for (int64_t s = 0; s < num_visible; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Key(layer, kv_head, s), head_dim, row.data());
    double dot = 0;
    for (int64_t d = 0; d < head_dim; ++d) dot += static_cast<double>(q[d]) * row[d];
    weights[s] = scale * dot;
  }
  const double max = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - max);
  for (int64_t s = 0; s < num_visible; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Value(layer, kv_head, s), head_dim, row.data());
    for (int64_t d = 0; d < head_dim; ++d) out[d] += weights[s] / sum * row[d];
  }
}

}  // namespace

std::vector<double> AttentionRef(const AttentionConfig& config, int64_t layer,
                                 std::span<const AttentionQuery> queries,
                                 std::span<const float> q) {
  const int64_t head_dim = config.head_dim;
  const double scale =
      config.scale != 0 ? config.scale : 1 / std::sqrt(static_cast<double>(head_dim));
  const int64_t heads_per_group = config.num_heads / config.num_kv_heads;
  std::vector<double> out(q.size(), 0.0);
  int64_t row = 0;  // of [T * H, D]
  for (const AttentionQuery& query : queries) {
    for (int64_t i = 0; i < query.num_tokens; ++i) {
      const int64_t num_visible = query.kv.length - query.num_tokens + i + 1;
      for (int64_t head = 0; head < config.num_heads; ++head, ++row) {
        AttendRow(query.kv, layer, head / heads_per_group, num_visible, scale,
                  q.data() + row * head_dim, out.data() + row * head_dim);
      }
    }
  }
  return out;
}

}  // namespace kvick
