#ifndef KVICK_PROVE_SECTIONS_H_
#define KVICK_PROVE_SECTIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "prove/proof.h"
#include "prove/prover.h"
#include "prove/subject.h"

namespace kvick {

// What every section works on.
struct ProofContext {
  const Model& model;
  const ProveOptions& options;
  Proof& proof;
  std::vector<std::vector<int32_t>> prompts;
  int64_t num_tokens = 0;  // new ones, as far as the model's context goes

  int64_t vocab_size() const { return model.info().vocab_size; }
  // Room for all prompts one after the other, and for what follows each.
  SubjectOptions Subjects() const;
  // The prompts over and over, to that length.
  std::vector<int32_t> LongText(int64_t length) const;
};

// One file each.
Result<ProofSection> ProveAnswers(ProofContext& context);
Result<ProofSection> ProveExactness(ProofContext& context);
Result<ProofSection> ProveAccuracy(ProofContext& context);
Result<ProofSection> ProveMemory(ProofContext& context);
Result<ProofSection> ProveSpeed(ProofContext& context);
Result<ProofSection> ProveStability(ProofContext& context);
Result<ProofSection> ProveBugsAreCaught(ProofContext& context);
Result<ProofSection> ProveHiddenCost(ProofContext& context);
Result<ProofSection> ProveServing(ProofContext& context);

// The geometry that the lesson on KV caches is about: 131,072 bytes a token in bf16.
KvConfig Llama3_8BGeometry();

// Reserves, writes and commits num_tokens tokens whose keys and values are all 1: pages of zeros
// the system may take back.
Status AppendOnes(KvCache& cache, SequenceId sequence, int64_t num_tokens);

}  // namespace kvick

#endif  // KVICK_PROVE_SECTIONS_H_
