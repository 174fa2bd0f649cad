#include "prove/planted_bugs.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/forward.h"
#include "model/kv_target.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

// Attention over the whole buffer: the view has the length of the allocation.
class WholeBufferTarget : public CachedKv {
 public:
  explicit WholeBufferTarget(int64_t context_tokens) : context_tokens_(context_tokens) {}

  std::span<const AttentionQuery> queries() const override {
    query_ = CachedKv::queries().front();
    query_.kv.length = context_tokens_;
    return {&query_, 1};
  }

 private:
  int64_t context_tokens_;
  mutable AttentionQuery query_;
};

// Query heads read the KV head after their own. After the keys of the last KV head follow the
// values of the first, as in a block.
class WrongGroupTarget : public CachedKv {
 public:
  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override {
    const std::vector<float> next_k = NextGroup(k, v), next_v = NextGroup(v, k);
    TensorView k_view = k, v_view = v;
    k_view.data = reinterpret_cast<const std::byte*>(next_k.data());
    v_view.data = reinterpret_cast<const std::byte*>(next_v.data());
    return CachedKv::Write(layer, k_view, v_view);
  }

 private:
  // [T, K, D] with group g replaced by g + 1, the last one by the first of `behind`.
  static std::vector<float> NextGroup(const TensorView& tensor, const TensorView& behind) {
    const int64_t heads = tensor.shape[1], dim = tensor.shape[2];
    std::vector<float> next;
    for (int64_t t = 0; t < tensor.shape[0]; ++t) {
      const auto* row = reinterpret_cast<const float*>(tensor.data) + t * heads * dim;
      const auto* row_behind = reinterpret_cast<const float*>(behind.data) + t * heads * dim;
      next.insert(next.end(), row + dim, row + heads * dim);
      next.insert(next.end(), row_behind, row_behind + dim);
    }
    return next;
  }
};

class PlantedSubject : public Subject {
 public:
  PlantedSubject(PlantedBug bug, std::unique_ptr<Forward> forward, std::unique_ptr<KvCache> cache)
      : bug_(bug), forward_(std::move(forward)), cache_(std::move(cache)) {
    const int64_t context_tokens = cache_->config().block_tokens;
    if (bug == PlantedBug::kMask) {
      target_ = std::make_unique<WholeBufferTarget>(context_tokens);
    } else if (bug == PlantedBug::kHeads) {
      target_ = std::make_unique<WrongGroupTarget>();
    } else {
      target_ = std::make_unique<CachedKv>();
    }
  }

  Status Begin() override {
    if (bug_ == PlantedBug::kReset && sequence_)
      return {};  // the write position stays where it was
    if (sequence_) KVICK_RETURN_IF_ERROR(cache_->Drop(*sequence_));
    sequence_ = cache_->CreateSequence();
    return {};
  }

  Status Feed(std::span<const int32_t> tokens, std::span<float> logits) override {
    KVICK_ASSIGN_OR_RETURN(WritePlan plan,
                           cache_->Reserve(*sequence_, static_cast<int64_t>(tokens.size())));
    // Each decode step is one pass. The bug counts positions from the start of the pass.
    const bool is_decode = plan.first_position() > 0;
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < plan.num_tokens(); ++i) {
      positions.push_back(bug_ == PlantedBug::kRope && is_decode ? i : plan.position(i));
    }
    const std::vector<int64_t> lengths(tokens.size(), plan.first_position() + plan.num_tokens());
    const auto last = static_cast<int32_t>(tokens.size() - 1);
    const SequenceChunk chunk{&plan, tokens};
    target_->Begin(*cache_, {&chunk, 1}, {&query_, 1});
    KVICK_RETURN_IF_ERROR(
        forward_->Run({tokens, positions, lengths, {&last, 1}, logits, target_.get()}));
    return cache_->Commit(std::move(plan));
  }

 private:
  PlantedBug bug_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<CachedKv> target_;
  AttentionQuery query_;
  std::optional<SequenceId> sequence_;
};

}  // namespace

std::string_view PlantedBugName(PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kRope:
      return "rope";
    case PlantedBug::kMask:
      return "mask";
    case PlantedBug::kReset:
      return "reset";
    case PlantedBug::kHeads:
      return "heads";
  }
  return "unknown";
}

std::string_view PlantedBugDescription(PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kRope:
      return "decode steps rotate their token as if it were at position 0";
    case PlantedBug::kMask:
      return "attention reads the whole buffer, including empty slots";
    case PlantedBug::kReset:
      return "the write position is not reset after the last request";
    case PlantedBug::kHeads:
      return "query heads read the KV head after their own";
  }
  return "unknown";
}

Result<PlantedBug> ParsePlantedBug(std::string_view name) {
  for (const PlantedBug bug : kPlantedBugs) {
    if (PlantedBugName(bug) == name) return bug;
  }
  return Fail(ErrorCode::kInvalidArgument,
              "planted bug: expected rope, mask, reset or heads, got \"{}\"", name);
}

Result<std::unique_ptr<Subject>> MakePlantedSubject(const Model& model, PlantedBug bug,
                                                    const SubjectOptions& options) {
  const ModelInfo& info = model.info();
  const AttentionConfig attention = AttentionOf(model, options);
  KVICK_ASSIGN_OR_RETURN(auto forward,
                         Forward::Create(model.parts().file, attention, options.context_tokens));
  KVICK_ASSIGN_OR_RETURN(
      auto cache,
      KvCache::Create(info.KvGeometry(attention.dtype).Contiguous(1, options.context_tokens)));
  return std::make_unique<PlantedSubject>(bug, std::move(forward), std::move(cache));
}

}  // namespace kvick
