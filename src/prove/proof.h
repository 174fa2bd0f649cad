#ifndef KVICK_PROVE_PROOF_H_
#define KVICK_PROVE_PROOF_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/model.h"

namespace kvick {

// One line of a proof.
struct Claim {
  std::string asked;
  std::string measured;
  bool holds = false;
};

struct ProofSection {
  std::string name;   // "answers": stable, for programs
  std::string title;  // for people
  std::vector<Claim> claims;

  bool holds() const;
};

// Microseconds of a decode step at each position, three ways.
struct StepTimes {
  std::vector<int64_t> positions;
  std::vector<double> cached_us;
  std::vector<double> recomputed_us;
  std::vector<double> concatenated_us;
};

// A text, cut around what its first token shows that another text has otherwise. Joined, it is the
// whole.
struct PartedText {
  std::string same;
  std::string token;  // empty: no token is another, or it never became a whole character
  std::string rest;

  std::string Whole() const { return same + token + rest; }
};

// What a planted bug did to a text.
struct BugTrace {
  std::string name;         // "rope"
  std::string description;  // how it is made in practice
  std::string prompt;
  PartedText healthy;
  PartedText planted;
  int64_t first_wrong_logits = -1;  // of the new tokens: the first chosen from other bits; -1: none
  int64_t first_wrong_token = -1;   // the first that is another; -1: the texts are the same
};

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

// Everything that was found, for the terminal, for JSON and for the page.
struct Proof {
  ModelInfo model;
  std::string model_path;
  std::string isa;
  std::string injected;  // the bug that was left planted; empty: none
  int num_threads = 0;
  double read_gbps = 0;  // of this machine, now
  std::vector<ProofSection> sections;
  StepTimes step_times;
  std::vector<BugTrace> bugs;
  WasteFigures waste;

  struct Count {
    int64_t held = 0, all = 0;
  };
  Count CountClaims() const;
  bool holds() const;
};

}  // namespace kvick

#endif  // KVICK_PROVE_PROOF_H_
