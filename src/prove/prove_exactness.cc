// However memory and work are divided, the logits are the same bits.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/same_bits.h"
#include "base/threads.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr int64_t kMaxTokens = 120;

constexpr std::string_view kCutExplanation =
    "The same text goes through the model, with memory and work divided differently. All logits "
    "must "
    "be the same bits, so that block size, chunk size and threads are a matter of speed alone.";
constexpr std::string_view kEmptyExplanation =
    "Every slot of the cache without a token is filled with NaN, which would spread to any result "
    "that reads it. The logits do not change, so no empty slot is read.";
constexpr std::string_view kBatchExplanation =
    "The text runs in one batch with seven others. They must not change its logits.";
constexpr std::string_view kHistoryExplanation =
    "Tokens are removed and computed again, a sequence is forked, blocks are reused. Nothing that "
    "happened to a block before may show in the logits.";

struct Cut {
  int64_t block_tokens = 16;  // 0: contiguous
  int64_t chunk_tokens = kMaxTokens;
  int num_threads = 1;
  KvFill fill = KvFill::kAsMapped;
};

class ExactnessProof {
 public:
  explicit ExactnessProof(const ProofContext& context)
      : context_(context),
        text_(context.LongText(std::min(kMaxTokens, context.model.info().max_positions))) {}

  Result<ProofSection> Run() {
    KVICK_ASSIGN_OR_RETURN(fresh_, Logits({0}));
    KVICK_RETURN_IF_ERROR(AddCut("contiguous = paged, blocks of 16", {16}));
    KVICK_RETURN_IF_ERROR(AddCut("contiguous = paged, blocks of 64", {64}));
    for (const int64_t chunk : {1, 7, 64}) {
      KVICK_RETURN_IF_ERROR(AddCut(fmt::format("one chunk = chunks of {}", chunk), {16, chunk}));
    }
    const int num_threads = std::max(2, NumUsableCores());
    KVICK_RETURN_IF_ERROR(
        AddCut(fmt::format("1 thread = {} threads", num_threads), {16, kMaxTokens, num_threads}));
    KVICK_RETURN_IF_ERROR(AddCut("empty slots that are NaN = zero", {16, 7, 1, KvFill::kNan}));
    KVICK_RETURN_IF_ERROR(AddBatch());
    KVICK_RETURN_IF_ERROR(AddSequences());
    return std::move(section_);
  }

 private:
  using Tokens = std::span<const int32_t>;

  Result<std::unique_ptr<CachedSubject>> Subject(const Cut& cut, int64_t num_texts) const {
    SubjectOptions options = context_.Subjects();
    options.context_tokens = num_texts * static_cast<int64_t>(text_.size() + 64);
    options.block_tokens = cut.block_tokens;
    options.exec.num_threads = cut.num_threads;
    options.fill = cut.fill;
    return CachedSubject::Create(context_.model, options);
  }

  // Logits [tokens, V] of the next tokens of a sequence.
  Result<std::vector<float>> Append(CachedSubject& subject, SequenceId sequence,
                                    Tokens tokens) const {
    std::vector<float> logits(tokens.size() * static_cast<size_t>(context_.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(WritePlan plan,
                           subject.cache().Reserve(sequence, static_cast<int64_t>(tokens.size())));
    const SequenceChunk chunk{&plan, tokens, std::ssize(text_)};
    KVICK_RETURN_IF_ERROR(
        subject.runner().Run(subject.cache(), {&chunk, 1}, LogitsOf::kAll, logits));
    KVICK_RETURN_IF_ERROR(subject.cache().Commit(std::move(plan)));
    return logits;
  }

  Result<std::vector<float>> Logits(const Cut& cut) const {
    KVICK_ASSIGN_OR_RETURN(const auto subject, Subject(cut, 1));
    const SequenceId sequence = subject->cache().CreateSequence();
    std::vector<float> logits;
    for (size_t i = 0; i < text_.size(); i += static_cast<size_t>(cut.chunk_tokens)) {
      const size_t num = std::min(static_cast<size_t>(cut.chunk_tokens), text_.size() - i);
      KVICK_ASSIGN_OR_RETURN(const auto chunk,
                             Append(*subject, sequence, Tokens(text_).subspan(i, num)));
      logits.insert(logits.end(), chunk.begin(), chunk.end());
    }
    return logits;
  }

  void Add(Claim claim, std::span<const float> got, size_t first_token) {
    const auto fresh = std::span<const float>(fresh_).subspan(
        first_token * static_cast<size_t>(context_.vocab_size()), got.size());
    const bool same = SameBits(got, fresh);
    claim.measured = same ? fmt::format("{} logits, the same bits", got.size()) : "bits DIFFER";
    claim.verdict = HoldsIf(same);
    section_.claims.push_back(std::move(claim));
  }

  Status AddCut(std::string statement, const Cut& cut) {
    KVICK_ASSIGN_OR_RETURN(const auto logits, Logits(cut));
    const bool is_nan = cut.fill == KvFill::kNan;
    Add({.statement = std::move(statement),
         .explanation = is_nan ? kEmptyExplanation : kCutExplanation},
        logits, 0);
    return {};
  }

  // Eight texts of different lengths in one batch; the first is ours.
  Status AddBatch() {
    constexpr size_t kNumTexts = 8;
    KVICK_ASSIGN_OR_RETURN(const auto subject, Subject({16}, kNumTexts));
    std::vector<WritePlan> plans;
    std::vector<SequenceChunk> chunks;
    plans.reserve(kNumTexts);
    size_t num_tokens = 0;
    for (size_t i = 0; i < kNumTexts; ++i) {
      const Tokens tokens = Tokens(text_).first(std::max<size_t>(1, text_.size() - 13 * i));
      KVICK_ASSIGN_OR_RETURN(WritePlan plan,
                             subject->cache().Reserve(subject->cache().CreateSequence(),
                                                      static_cast<int64_t>(tokens.size())));
      plans.push_back(std::move(plan));
      chunks.push_back({&plans.back(), tokens});
      num_tokens += tokens.size();
    }
    const auto width = static_cast<size_t>(context_.vocab_size());
    std::vector<float> logits(num_tokens * width);
    KVICK_RETURN_IF_ERROR(subject->runner().Run(subject->cache(), chunks, LogitsOf::kAll, logits));
    Add({.statement = "alone = in a batch of 8 of other lengths", .explanation = kBatchExplanation},
        std::span(logits).first(text_.size() * width), 0);
    return {};
  }

  // A sequence that was truncated, one that was forked, and one in reused blocks.
  Status AddSequences() {
    KVICK_ASSIGN_OR_RETURN(const auto subject, Subject({16}, 3));
    KvCache& cache = subject->cache();
    const size_t cut = text_.size() / 3 + 1;  // inside a block
    const Tokens rest = Tokens(text_).subspan(cut);
    std::vector<int32_t> other(text_.rbegin(), text_.rend());
    std::copy_n(text_.begin(), cut, other.begin());

    const SequenceId first = cache.CreateSequence();
    KVICK_RETURN_IF_ERROR(Append(*subject, first, other));
    KVICK_RETURN_IF_ERROR(cache.Truncate(first, static_cast<int64_t>(cut)));
    KVICK_ASSIGN_OR_RETURN(const SequenceId fork, cache.Fork(first));
    KVICK_ASSIGN_OR_RETURN(const auto regrown, Append(*subject, first, rest));
    Add({.statement = "after truncate and regrow = fresh", .explanation = kHistoryExplanation},
        regrown, cut);
    KVICK_ASSIGN_OR_RETURN(const auto forked, Append(*subject, fork, rest));
    Add({.statement = "forked = fresh", .explanation = kHistoryExplanation}, forked, cut);

    KVICK_RETURN_IF_ERROR(cache.Drop(first));
    KVICK_RETURN_IF_ERROR(cache.Drop(fork));
    KVICK_ASSIGN_OR_RETURN(const auto reused, Append(*subject, cache.CreateSequence(), text_));
    Add({.statement = "blocks that another request used = new blocks",
         .explanation = kHistoryExplanation},
        reused, 0);
    return {};
  }

  const ProofContext& context_;
  std::vector<int32_t> text_;
  std::vector<float> fresh_;
  ProofSection section_;
};

}  // namespace

Result<ProofSection> ProveExactness(ProofContext& context) { return ExactnessProof(context).Run(); }

}  // namespace kvick
