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

// Pseudo-random token ids, always the same.
std::vector<int32_t> FixedTokens(int64_t num_tokens, int64_t vocab_size);
// Weights that each token is multiplied with.
int64_t NumWeights(const ModelInfo& model);

// The input of every section.
struct ProofContext {
  const Model& model;
  const ProveOptions& options;
  Proof& proof;
  std::vector<std::vector<int32_t>> prompts;
  int64_t num_tokens = 0;  // new tokens, limited by the model's context

  int64_t vocab_size() const { return model.info().vocab_size; }
  // Room for all prompts, one after the other, and for the new tokens of each.
  SubjectOptions Subjects() const;
  // The prompts repeated to that length.
  std::vector<int32_t> LongText(int64_t length) const;
};

// A claim that could not be judged because of `error`: too little memory.
Claim NotJudged(std::string statement, const Error& error);
// The claim; if memory is insufficient, one that is not judged. Errors: any other of `claim`.
Result<Claim> JudgeIfMemorySuffices(std::string statement, Result<Claim> claim);

// One file per section.
Result<ProofSection> ProveAnswers(ProofContext& context);
Result<ProofSection> ProveExactness(ProofContext& context);
Result<ProofSection> ProveMachines(ProofContext& context);
Result<ProofSection> ProveAccuracy(ProofContext& context);
Result<ProofSection> ProveMemory(ProofContext& context);
Result<ProofSection> ProveSpeed(ProofContext& context);
Result<ProofSection> ProveStability(ProofContext& context);
Result<ProofSection> ProveBugsAreCaught(ProofContext& context);
Result<ProofSection> ProveHiddenCost(ProofContext& context);
Result<ProofSection> ProveServing(ProofContext& context);

// Llama 3 8B, a well-known geometry: 131,072 bytes per token in bf16.
KvConfig Llama3_8BGeometry();

// Reserves, writes and commits num_tokens tokens whose keys and values are all 1. (The system may
// take back pages of zeros.)
Status AppendOnes(KvCache& cache, SequenceId sequence, int64_t num_tokens);

}  // namespace kvick

#endif  // KVICK_PROVE_SECTIONS_H_
