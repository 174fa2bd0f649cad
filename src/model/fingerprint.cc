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

}  // namespace

std::string Fingerprint(const ModelFile& model) {
  Digest digest;
  const LlamaConfig& config = model.config();
  for (const int64_t number : {config.num_layers, config.hidden_size, config.intermediate_size,
                               config.num_heads, config.num_kv_heads, config.head_dim,
                               config.vocab_size, static_cast<int64_t>(config.rope.pairs)}) {
    digest.AddNumber(number);
  }
  digest.AddNumber(config.rms_norm_eps);
  digest.Add(RopeInverseFrequencies(config));
  const ModelWeights& weights = model.weights();
  AddMatrix(digest, weights.embedding);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto* vector :
         {&layer.attention_norm, &layer.ffn_norm, &layer.q_bias, &layer.k_bias, &layer.v_bias,
          &layer.o_bias, &layer.gate_bias, &layer.up_bias, &layer.down_bias}) {
      digest.Add(*vector);
    }
    for (const MatrixView* matrix :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      AddMatrix(digest, *matrix);
    }
  }
  digest.Add(weights.final_norm);
  AddMatrix(digest, weights.output);
  return digest.Hex();
}

}  // namespace kvick
