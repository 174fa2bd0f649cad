// The same logits on every machine, and on every implementation that this machine has.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/exec.h"
#include "base/isa.h"
#include "base/same_bits.h"
#include "prove/sections.h"
#include "prove/sha256.h"

namespace kvick {
namespace {

constexpr int64_t kMaxTokens = 120;

constexpr std::string_view kRecordedExplanation =
    "The numerics fix the order of every operation, so no processor changes a bit. The program "
    "carries the SHA-256 of the logits of this model for fixed tokens, recorded on another "
    "machine, and this machine computes them again.";
constexpr std::string_view kIsaExplanation =
    "Implementations of the same numerics differ in speed alone. Each that this machine has "
    "computes the logits of the same tokens, and all bits must be equal.";

// Of lines such as sha256sum writes: "<hash>  <numerics>". Empty: none.
std::string_view RecordedHash(std::string_view lines, std::string_view numerics) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const size_t gap = line.find("  ");
    if (gap != std::string_view::npos && line.substr(gap + 2) == numerics) {
      return line.substr(0, gap);
    }
  }
  return {};
}

class MachinesProof {
 public:
  explicit MachinesProof(ProofContext& context)
      : context_(context),
        numerics_(context.proof.numerics),
        tokens_(FixedTokens(std::min(kMaxTokens, context.model.info().max_positions),
                            context.vocab_size())) {}

  Result<ProofSection> Run() {
    KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(context_.options.exec));
    KVICK_ASSIGN_OR_RETURN(logits_, Logits(exec, tokens_));
    KVICK_RETURN_IF_ERROR(AddRecorded());
    for (const Isa isa : AvailableIsas()) {
      if (isa == exec.isa || OrderOf(isa) != OrderOf(exec.isa)) continue;
      KVICK_RETURN_IF_ERROR(AddIsa(exec, isa));
    }
    if (section_.claims.empty()) {
      section_.claims.push_back({fmt::format("{} = other implementations", context_.proof.isa),
                                 fmt::format("this machine has no other of {}", numerics_),
                                 Verdict::kNotJudged, kIsaExplanation});
    }
    return std::move(section_);
  }

 private:
  using Tokens = std::span<const int32_t>;

  // [tokens, V]
  Result<std::vector<float>> Logits(const Exec& exec, Tokens tokens) const {
    SubjectOptions options = context_.Subjects();
    options.exec = OptionsOf(exec);
    options.context_tokens = std::ssize(tokens);
    KVICK_ASSIGN_OR_RETURN(const auto subject, CachedSubject::Create(context_.model, options));
    std::vector<float> logits(tokens.size() * static_cast<size_t>(context_.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(
        WritePlan plan,
        subject->cache().Reserve(subject->cache().CreateSequence(), std::ssize(tokens)));
    const SequenceChunk chunk{&plan, tokens};
    KVICK_RETURN_IF_ERROR(
        subject->runner().Run(subject->cache(), {&chunk, 1}, LogitsOf::kAll, logits));
    return logits;
  }

  Status AddRecorded() {
    LogitsHash& hash = context_.proof.logits;
    hash.num_tokens = std::ssize(tokens_);
    KVICK_ASSIGN_OR_RETURN(hash.sha256, Sha256(std::as_bytes(std::span(logits_))));
    if (context_.options.recorded_hashes.empty()) return {};
    hash.recorded = RecordedHash(context_.options.recorded_hashes, numerics_);
    const bool is_same = hash.sha256 == hash.recorded;
    section_.claims.push_back(
        {"the logits on this machine = those on every other machine",
         fmt::format("{} logits in {}, SHA-256 {}...: {}", logits_.size(), numerics_,
                     hash.sha256.substr(0, 16),
                     is_same ? "as recorded" : "DIFFERS from the recorded one"),
         HoldsIf(is_same), kRecordedExplanation});
    return {};
  }

  // As many tokens as the slowest implementation computes in some seconds. The logits of the first
  // tokens do not depend on the others.
  Status AddIsa(Exec exec, Isa isa) {
    constexpr int64_t kMaxMultiplications = 1'000'000'000;
    const int64_t num_tokens = std::clamp<int64_t>(
        kMaxMultiplications / NumWeights(context_.model.info()), 1, std::ssize(tokens_));
    exec.isa = isa;
    KVICK_ASSIGN_OR_RETURN(const auto logits,
                           Logits(exec, Tokens(tokens_).first(static_cast<size_t>(num_tokens))));
    const bool is_same = SameBits(logits, std::span<const float>(logits_).first(logits.size()));
    section_.claims.push_back(
        {fmt::format("{} = {}", context_.proof.isa, IsaName(isa)),
         is_same ? fmt::format("{} logits, the same bits", logits.size()) : "bits DIFFER",
         HoldsIf(is_same), kIsaExplanation});
    return {};
  }

  ProofContext& context_;
  const std::string& numerics_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  ProofSection section_;
};

}  // namespace

Result<ProofSection> ProveMachines(ProofContext& context) { return MachinesProof(context).Run(); }

}  // namespace kvick
