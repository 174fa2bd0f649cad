#include "model/fingerprint.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"

namespace kvick {
namespace {

// Gathers bytes, each piece behind its size.
class Digest {
 public:
  Digest() : state_(XXH3_createState(), XXH3_freeState) {
    KVICK_CHECK(state_ != nullptr);
    XXH3_128bits_reset(state_.get());
  }

  void Add(const void* data, size_t num_bytes) {
    XXH3_128bits_update(state_.get(), &num_bytes, sizeof(num_bytes));
    XXH3_128bits_update(state_.get(), data, num_bytes);
  }
  template <class T>
  void Add(const std::vector<T>& values) {
    Add(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  void AddNumber(T number) {
    Add(&number, sizeof(number));
  }
  std::string Hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

// Training moves nearly every weight: 64 places of 64 bytes find a difference.
void AddMatrix(Digest& digest, const MatrixView& w) {
  constexpr int64_t kNumSamples = 64, kSampleBytes = 64;
  const int64_t num_bytes = w.num_rows * RowBytes(w);
  digest.AddNumber(static_cast<int>(w.type));
  digest.AddNumber(w.num_rows);
  digest.AddNumber(w.num_cols);
  const int64_t last = std::max<int64_t>(0, num_bytes - kSampleBytes);
  for (int64_t i = 0; i < kNumSamples; ++i) {
    const int64_t begin = last / (kNumSamples - 1) * i;
    digest.Add(w.data + begin, static_cast<size_t>(std::min(kSampleBytes, num_bytes - begin)));
  }
}

// What the layers do, and the numbers that decide how.
void AddSpec(Digest& digest, const ModelSpec& spec) {
  for (const int64_t number : {spec.num_layers(), spec.hidden_size, spec.intermediate_size,
                               spec.num_heads, spec.num_kv_heads, spec.head_dim, spec.vocab_size}) {
    digest.AddNumber(number);
  }
  for (const double number :
       {spec.rms_norm_eps, spec.embedding_scale, spec.residual_scale, spec.attention_scale,
        spec.score_soft_cap, spec.logits_scale, spec.logits_soft_cap}) {
    digest.AddNumber(number);
  }
  for (const RopeSpec& rope : spec.ropes) {
    digest.AddNumber(rope.pairs);
    digest.AddNumber(rope.magnitude);
    digest.AddNumber(rope.original_max_positions);
    digest.Add(RopeInverseFrequencies(rope));
    digest.Add(RopeInverseFrequencies(rope, spec.max_positions));
  }
  for (const LayerSpec& layer : spec.layers) {
    digest.AddNumber(layer.norm_before);
    digest.AddNumber(layer.norm_after);
    digest.AddNumber(layer.qk_norm);
    digest.AddNumber(layer.rope);
    digest.AddNumber(layer.window);
    digest.AddNumber(layer.activation);
  }
}

}  // namespace

std::string Fingerprint(const ModelFile& model) {
  Digest digest;
  AddSpec(digest, model.spec());
  const ModelWeights& weights = model.weights();
  AddMatrix(digest, weights.embedding);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto vector : LayerWeights::kVectors) digest.Add(layer.*vector);
    for (const auto matrix : LayerWeights::kMatrices) AddMatrix(digest, layer.*matrix);
  }
  digest.Add(weights.final_norm);
  AddMatrix(digest, weights.output);
  return digest.Hex();
}

}  // namespace kvick
