#include "prove/concatenated_subject.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"
#include "base/threads.h"
#include "model/forward.h"
#include "model/kv_target.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

// Returns new memory with the rows of `old` and then `num_new` rows of zeros. Counts the copied
// rows.
std::vector<std::byte> Concatenate(const std::vector<std::byte>& old, int64_t num_new,
                                   int64_t row_bytes, int64_t& num_copied) {
  std::vector<std::byte> longer(old.size() + static_cast<size_t>(num_new * row_bytes));
  std::copy(old.begin(), old.end(), longer.begin());
  num_copied += static_cast<int64_t>(old.size()) / row_bytes;
  return longer;
}

class ConcatenatedTarget : public KvTarget {
 public:
  explicit ConcatenatedTarget(const AttentionConfig& config, int64_t num_layers)
      : keys_(static_cast<size_t>(num_layers)), values_(static_cast<size_t>(num_layers)) {
    KvLayout& layout = query_.kv.layout;
    layout.num_layers = num_layers;
    layout.num_kv_heads = config.num_kv_heads;
    layout.head_dim = config.head_dim;
    layout.dtype = config.dtype;
    layout.head_stride = config.head_dim * DTypeBytes(config.dtype);
    layout.slot_stride = config.num_kv_heads * layout.head_stride;
    query_.kv.blocks = &kOnlyBlock;
  }

  int64_t num_tokens() const { return num_tokens_; }

  void Begin() {
    for (auto* tensors : {&keys_, &values_}) {
      for (auto& tensor : *tensors) tensor.clear();
    }
    num_tokens_ = 0;
  }

  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override {
    const KvLayout& layout = query_.kv.layout;
    const int64_t num_new = k.shape[0];
    if (layer == 0) num_tokens_ += num_new;
    const int64_t num_elements = num_new * layout.num_kv_heads * layout.head_dim;
    const std::pair<std::vector<std::byte>*, const TensorView*> parts[] = {
        {&keys_[static_cast<size_t>(layer)], &k}, {&values_[static_cast<size_t>(layer)], &v}};
    for (const auto& [tensor, rows] : parts) {
      const size_t old_bytes = tensor->size();
      *tensor = Concatenate(*tensor, num_new, layout.slot_stride, num_copied_);
      ConvertFromF32(layout.dtype, reinterpret_cast<const float*>(rows->data), num_elements,
                     tensor->data() + old_bytes);
    }
    Point(layer, num_new);
    return {};
  }

  std::span<const AttentionQuery> queries() const override { return {&query_, 1}; }

 private:
  static constexpr BlockId kOnlyBlock{0};

  // A view of the two tensors of a layer: it has only this layer.
  void Point(int64_t layer, int64_t num_new) {
    KvView& view = query_.kv;
    view.base = keys_[static_cast<size_t>(layer)].data();
    view.layout.value_offset = values_[static_cast<size_t>(layer)].data() - view.base;
    view.layout.block_tokens = num_tokens_;
    view.length = num_tokens_;
    query_.num_tokens = num_new;
  }

  std::vector<std::vector<std::byte>> keys_, values_;  // [layer][tokens, K, D]
  AttentionQuery query_;
  int64_t num_tokens_ = 0;
  int64_t num_copied_ = 0;
};

}  // namespace

struct ConcatenatedSubject::State {
  std::unique_ptr<Forward> forward;
  ConcatenatedTarget target;
};

ConcatenatedSubject::ConcatenatedSubject() = default;
ConcatenatedSubject::~ConcatenatedSubject() = default;

Result<std::unique_ptr<ConcatenatedSubject>> ConcatenatedSubject::Create(
    const Model& model, const SubjectOptions& options) {
  const AttentionConfig attention = AttentionOf(model, options);
  KVICK_ASSIGN_OR_RETURN(auto forward,
                         Forward::Create(model.parts().file, attention, options.context_tokens));
  auto subject = std::make_unique<ConcatenatedSubject>();
  subject->state_ = std::make_unique<State>(
      State{std::move(forward), ConcatenatedTarget(attention, model.info().num_layers)});
  return subject;
}

Status ConcatenatedSubject::Begin() {
  state_->target.Begin();
  return {};
}

Status ConcatenatedSubject::Feed(std::span<const int32_t> tokens, std::span<float> logits) {
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), state_->target.num_tokens());
  const std::vector<int64_t> lengths(tokens.size(), positions.back() + 1);
  const auto last = static_cast<int32_t>(tokens.size() - 1);
  return state_->forward->Run({tokens, positions, lengths, {&last, 1}, logits, &state_->target});
}

int64_t CountCopiedRows(int64_t num_tokens) {
  constexpr int64_t kRowBytes = 16;
  std::vector<std::byte> tensor;
  int64_t num_copied = 0;
  for (int64_t i = 0; i < num_tokens; ++i) {
    tensor = Concatenate(tensor, 1, kRowBytes, num_copied);
  }
  return num_copied;
}

}  // namespace kvick
