// Many requests in one cache: prefix hits, preemption, batches.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/same_bits.h"
#include "engine/batcher.h"
#include "engine/context_size.h"
#include "model/random_model.h"
#include "prove/sections.h"
#include "prove/serving_run.h"
#include "prove/serving_trace.h"

namespace kvick {
namespace {

using Tokens = std::span<const int32_t>;

constexpr std::string_view kHitExplanation =
    "A prompt whose beginning is in the cache is not computed again: only its last tokens are. "
    "Their "
    "logits must be the same bits as without the hit.";
constexpr std::string_view kSaltExplanation =
    "A request with another cache_salt must find nothing, or the time to its first token would "
    "reveal "
    "what others have asked.";
constexpr std::string_view kPreemptedExplanation =
    "When the cache is full, a request can lose its blocks and compute them again later. It must "
    "continue as if this had not happened.";
constexpr std::string_view kMixExplanation =
    "Many requests share a cache that is too small for them: they wait, are preempted, share "
    "prefixes "
    "and fork. Each must give the same tokens as when it runs alone.";
constexpr std::string_view kWasteExplanation =
    "A simulated load of many requests. Only the last block of a request can be partly empty, so "
    "almost no memory is reserved in vain and more requests run at once.";

constexpr const char* kMixStatement =
    "requests in any mix, preempted, with prefix hits and forks = each alone";
constexpr const char* kWasteStatement =
    "requests of 1,000 tokens on average: at most 1 % of what they reserve is empty";

constexpr int64_t kBlockTokens = 16;

// Compares the logits of a text that was found in the cache, or preempted, with computing it.
class PrefixProof {
 public:
  PrefixProof(const ProofContext& context, Tokens text) : context_(context), text_(text) {}

  Result<std::vector<Claim>> Run() {
    SubjectOptions options = context_.Subjects();
    options.context_tokens = 4 * std::ssize(text_) + 64;
    options.block_tokens = kBlockTokens;
    options.fill = KvFill::kNan;
    KVICK_ASSIGN_OR_RETURN(subject_, CachedSubject::Create(context_.model, options));
    const SequenceId first = cache().CreateSequence();
    KVICK_ASSIGN_OR_RETURN(computed_, Append(first, text_));
    KVICK_RETURN_IF_ERROR(cache().FinishAndCache(first, ScopeOf("a"), text_));
    KVICK_RETURN_IF_ERROR(AddHit("a prompt found in the cache = computed", text_.size() - 1));
    KVICK_RETURN_IF_ERROR(AddHit("found up to a token inside a block = computed",
                                 std::min(text_.size() - 1, size_t{kBlockTokens} + 5)));
    AddForeign();
    KVICK_RETURN_IF_ERROR(AddInterrupted());
    return std::move(claims_);
  }

 private:
  KvCache& cache() { return subject_->cache(); }
  static PrefixScope ScopeOf(std::string_view cache_salt) {
    return std::move(PrefixScope().Text("cache_salt", cache_salt));
  }

  // Logits [tokens, V] of the next tokens of a sequence.
  Result<std::vector<float>> Append(SequenceId sequence, Tokens tokens) {
    std::vector<float> logits(tokens.size() * static_cast<size_t>(context_.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache().Reserve(sequence, std::ssize(tokens)));
    const SequenceChunk chunk{&plan, tokens};
    KVICK_RETURN_IF_ERROR(subject_->runner().Run(cache(), {&chunk, 1}, LogitsOf::kAll, logits));
    KVICK_RETURN_IF_ERROR(cache().Commit(std::move(plan)));
    return logits;
  }

  // Completes a claim that has a statement and an explanation.
  void Add(Claim claim, std::span<const float> logits, int64_t num_found) {
    const bool is_same = SameBits(logits, std::span<const float>(computed_).last(logits.size()));
    claim.measured = fmt::format(
        "{} of {} tokens found, {}", num_found, text_.size(),
        is_same ? fmt::format("{} logits, the same bits", logits.size()) : "bits DIFFER");
    claim.verdict = HoldsIf(is_same);
    claims_.push_back(std::move(claim));
  }

  // Looks the first num_tokens tokens up, and computes the rest.
  Status AddHit(std::string statement, size_t num_tokens) {
    const SequenceId sequence = cache().CreateSequence(ScopeOf("a"), text_.first(num_tokens));
    KVICK_ASSIGN_OR_RETURN(const int64_t num_found, cache().Length(sequence));
    KVICK_ASSIGN_OR_RETURN(const auto logits, Append(sequence, text_.subspan(num_found)));
    Add({.statement = std::move(statement), .explanation = kHitExplanation}, logits, num_found);
    if (num_found != static_cast<int64_t>(num_tokens)) claims_.back().verdict = Verdict::kFails;
    return cache().Drop(sequence);
  }

  void AddForeign() {
    const int64_t num_found = cache().FindPrefix(ScopeOf("b"), text_).num_tokens;
    claims_.push_back({"nothing is found for another cache_salt",
                       fmt::format("{} of {} tokens found", num_found, text_.size()),
                       HoldsIf(num_found == 0), kSaltExplanation});
  }

  // Interrupts the text in the middle, evicts all of it, and computes it again in another chunk.
  Status AddInterrupted() {
    cache().ClearPrefixCache();
    const size_t middle = text_.size() / 2;
    const SequenceId sequence = cache().CreateSequence();
    KVICK_RETURN_IF_ERROR(Append(sequence, text_.first(middle)));
    KVICK_RETURN_IF_ERROR(cache().FinishAndCache(sequence, ScopeOf("a"), text_.first(middle)));
    cache().ClearPrefixCache();
    const SequenceId resumed = cache().CreateSequence(ScopeOf("a"), text_);
    KVICK_ASSIGN_OR_RETURN(const int64_t num_found, cache().Length(resumed));
    KVICK_ASSIGN_OR_RETURN(const auto logits, Append(resumed, text_));
    Add({.statement = "preempted, evicted and resumed = uninterrupted",
         .explanation = kPreemptedExplanation},
        logits, num_found);
    return {};
  }

  const ProofContext& context_;
  Tokens text_;
  std::unique_ptr<CachedSubject> subject_;
  std::vector<float> computed_;
  std::vector<Claim> claims_;
};

// Requests of many kinds: greedy and sampled, one completion or two. Their prompts are short and
// their completions long, so that many are admitted that later run out of blocks.
std::vector<GenerateRequest> MixedRequests(Tokens text) {
  constexpr size_t kNumRequests = 16;
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < kNumRequests; ++i) {
    GenerateRequest request;
    const Tokens prompt = text.first(std::min(text.size(), 1 + i * 37 % 24));
    request.prompt.assign(prompt.begin(), prompt.end());
    request.max_new_tokens = static_cast<int64_t>(40 + i * 11 % 32);
    request.num_samples = 1 + static_cast<int64_t>(i % 2);
    request.sampling.temperature = i % 3 == 0 ? 0 : 1;
    request.sampling.seed = i;
    request.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  return requests;
}

Result<Claim> ProveMix(const ProofContext& context, Tokens text) {
  const std::vector<GenerateRequest> requests = MixedRequests(text);
  EngineOptions options;
  options.exec = context.options.exec;
  options.context_tokens = 96;  // the longest request: 24 tokens and 71 new ones
  options.max_sequences = 1;
  options.prefix_reuse = PrefixReuse::kOff;
  KVICK_ASSIGN_OR_RETURN(const auto alone, Engine::Create(context.model, options));
  options.max_sequences = 12;
  options.prefix_reuse = PrefixReuse::kOn;
  options.cache_bytes = 2 * alone->stats().usage.capacity_bytes;  // two of the longest requests
  KVICK_ASSIGN_OR_RETURN(const auto together, Engine::Create(context.model, options));
  KVICK_ASSIGN_OR_RETURN(const auto got, GenerateAll(*together, requests));
  int64_t num_different = 0;
  size_t next = 0;
  for (const GenerateRequest& request : requests) {
    KVICK_ASSIGN_OR_RETURN(const auto results, GenerateAll(*alone, {&request, 1}));
    for (const GenerateResult& result : results) {
      if (got[next++].tokens != result.tokens) ++num_different;
    }
  }
  const EngineStats stats = together->stats();
  return Claim{
      kMixStatement,
      fmt::format("{} completions in {} blocks, {} preemptions, {} completions differ", got.size(),
                  together->cache_config().num_blocks, stats.num_preemptions, num_different),
      HoldsIf(num_different == 0 && stats.num_preemptions > 0), kMixExplanation};
}

// Sums over the steps in which requests waited. After them the cache only becomes emptier.
struct MeanHeld {
  double num_steps = 0, in_flight = 0, empty_bytes = 0, reserved_bytes = 0;
};

MeanHeld StepWhileRequestsWait(Batcher& batcher) {
  MeanHeld held;
  for (EngineStats stats = batcher.stats(); stats.num_waiting > 0; stats = batcher.stats()) {
    batcher.Step();
    batcher.ReportEnds();
    ++held.num_steps;
    held.in_flight += static_cast<double>(stats.num_running);
    held.empty_bytes += static_cast<double>(stats.usage.empty_bytes);
    held.reserved_bytes += static_cast<double>(stats.usage.reserved_bytes);
  }
  return held;
}

// A trace of requests of 1,000 tokens, on a model so small that only the cache matters.
Result<Claim> ProveWaste(const ProofContext& context) {
  constexpr int64_t kCacheTokens = 65536;  // 8 GiB of Llama 3 8B
  constexpr double kMaxWaste = 0.01;
  ModelSpec spec;
  spec.layers.resize(1);
  spec.hidden_size = spec.intermediate_size = 32;
  spec.num_heads = spec.num_kv_heads = 1;
  spec.head_dim = 8;
  spec.vocab_size = 64;
  spec.max_positions = 8192;
  KVICK_ASSIGN_OR_RETURN(const RandomModel model, RandomModel::Create(spec, WeightType::kBF16, 1));
  TraceOptions trace_options;
  trace_options.num_requests = 150;
  trace_options.shared_prefix = 0;  // shared blocks count once and would hide the waste
  KVICK_ASSIGN_OR_RETURN(const auto trace, MakeTrace(trace_options));
  EngineOptions options;
  options.exec = context.options.exec;
  options.context_tokens = spec.max_positions;
  options.max_sequences = 256;
  KVICK_ASSIGN_OR_RETURN(const int64_t token_bytes,
                         CacheBytesPerToken(model.model().info(), std::nullopt));
  options.cache_bytes = kCacheTokens * token_bytes;
  KVICK_ASSIGN_OR_RETURN(const auto batcher, Batcher::Create(model.model(), options));
  uint64_t last_id = 0;
  for (const TracedRequest& traced : trace) {
    GenerateRequest request = RequestOf(traced, static_cast<int64_t>(last_id), spec.vocab_size);
    batcher->Add(RequestId{++last_id}, std::move(request), {}, Clock::now());
  }
  const MeanHeld held = StepWhileRequestsWait(*batcher);
  const double waste = held.empty_bytes / held.reserved_bytes;
  return Claim{
      kWasteStatement,
      fmt::format("{:.2f} % with {:.0f} requests in flight, where {} would fit contiguous",
                  100 * waste, held.in_flight / held.num_steps, kCacheTokens / spec.max_positions),
      HoldsIf(waste <= kMaxWaste), kWasteExplanation};
}

}  // namespace

Result<ProofSection> ProveServing(ProofContext& context) {
  constexpr int64_t kMaxTokens = 64;
  const std::vector<int32_t> text =
      context.LongText(std::min(kMaxTokens, context.model.info().max_positions));
  ProofSection section;
  KVICK_ASSIGN_OR_RETURN(section.claims, PrefixProof(context, text).Run());
  KVICK_ASSIGN_OR_RETURN(Claim mix, JudgeIfMemorySuffices(kMixStatement, ProveMix(context, text)));
  section.claims.push_back(std::move(mix));
  KVICK_ASSIGN_OR_RETURN(Claim waste, JudgeIfMemorySuffices(kWasteStatement, ProveWaste(context)));
  section.claims.push_back(std::move(waste));
  return section;
}

}  // namespace kvick
