#ifndef KVICK_PROVE_PROOF_H_
#define KVICK_PROVE_PROOF_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/model.h"

namespace kvick {

enum class Verdict {
  kHolds,
  kFails,
  kNotJudged,  // this machine could not show it: too little memory, or too busy to time anything
};

std::string_view VerdictName(Verdict verdict);  // "holds", "fails", "not judged"
constexpr Verdict HoldsIf(bool condition) { return condition ? Verdict::kHolds : Verdict::kFails; }

// One statement of a proof, and what was found.
struct Claim {
  std::string statement;
  std::string measured = "";  // for kNotJudged: the reason
  Verdict verdict = Verdict::kFails;
  // What was done, and why it matters, for readers who are new to KV caches: a literal. Neighbours
  // that share it are shown under it.
  std::string_view explanation = "";
};

struct ProofSection {
  std::string name;   // "answers": stable, for programs
  std::string title;  // for people
  std::vector<Claim> claims;

  Verdict verdict() const;
};

// kFails if any fails; else kHolds if any holds; else kNotJudged.
Verdict Combine(std::span<const Claim> claims);

// Microseconds of a decode step at each position, three ways.
struct StepTimes {
  std::vector<int64_t> positions;
  std::vector<double> cached_us;
  std::vector<double> recomputed_us;
  std::vector<double> concatenated_us;
};

// A text, split around the first token that differs from another text.
struct SplitText {
  std::string same;
  std::string token;  // empty: no token differs, or the token is only a part of a character
  std::string rest;

  std::string Whole() const { return same + token + rest; }
};

// The effect of a planted bug on a text. New tokens are counted from 0.
struct BugTrace {
  std::string name;         // "rope"
  std::string description;  // how it comes about in practice
  std::string prompt;
  SplitText healthy;
  SplitText planted;
  int64_t num_tokens = 0;           // new tokens of each text
  int64_t first_wrong_logits = -1;  // the first token whose logits differ; -1: none
  int64_t first_wrong_token = -1;   // the first token that differs; -1: the texts are the same
};

// "caught: the logits differ from new token 1 on, the text from new token 11 on": from 1, for
// people.
std::string DescribeCaught(const BugTrace& trace);

// Requests in one amount of memory, reserved whole and in blocks.
struct WasteFigures {
  int64_t num_requests = 0;
  int64_t context_tokens = 0;
  int64_t used_tokens = 0;  // of each request
  int64_t memory_bytes = 0;
  KvUsage contiguous;
  KvUsage paged;
  int64_t contiguous_requests_that_fit = 0;
  int64_t paged_requests_that_fit = 0;
};

// SHA-256 of logits [num_tokens, V] of fixed tokens, as f32 in the order of positions: equal on
// every machine with the same numerics.
struct LogitsHash {
  int64_t num_tokens = 0;
  std::string sha256;    // empty: not computed
  std::string recorded;  // what it must be; empty: unknown
};

// All results, for the terminal, for JSON and for the page.
struct Proof {
  std::string made_by;  // program and version; set by the program, like `date` and `model_path`
  std::string date;
  std::string model_path;
  ModelInfo model;
  std::string processor;  // empty: unknown
  std::string numerics;   // name and version: "canonical-1"
  std::string isa;
  std::string injected;  // the bug that was left planted; empty: none
  int num_threads = 0;
  double read_gbps = 0;  // read bandwidth of this machine, now; 0: not measured
  LogitsHash logits;
  std::vector<ProofSection> sections;
  StepTimes step_times;
  std::vector<BugTrace> bugs;
  WasteFigures waste;

  struct Count {
    int64_t held = 0, failed = 0, not_judged = 0;

    int64_t all() const { return held + failed + not_judged; }
  };
  Count CountClaims() const;
  Verdict verdict() const;  // as Combine of all claims
};

// "Intel(R) ..., canonical-1 on avx512, 2 threads, reads 32.4 GB/s"
std::string DescribeMachine(const Proof& proof);
// "3fa9... (SHA-256 of the logits of 120 tokens in canonical-1)". REQUIRES: it was computed.
std::string DescribeLogits(const Proof& proof);
// "37 of 37 claims", "34 of 37 claims, 3 not judged"
std::string DescribeCount(const Proof::Count& count);

}  // namespace kvick

#endif  // KVICK_PROVE_PROOF_H_
