#ifndef KVICK_APPS_KVICK_CLI_H_
#define KVICK_APPS_KVICK_CLI_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <utility>

#include "kvick/status.h"

// The verbs. Exit codes: 0 success; 1 failure, and one sentence on stderr says why; 2 a wrong
// command line; 3 measurements that bench --strict does not trust; 128 + the signal's number where
// a verb was asked to stop and did so in order.
namespace kvick::cli {

inline constexpr int kFailure = 1;
inline constexpr int kWrongUse = 2;
inline constexpr int kUntrusted = 3;

// How a verb ends: in success, or in a failure with the exit code of its kind.
struct Outcome {
  // NOLINTBEGIN(google-explicit-constructor): a Status and an Error are outcomes
  Outcome(Status ended) : status(std::move(ended)) {}
  Outcome(tl::unexpected<Error> error, int exit_code = kFailure)
      : status(std::move(error)), exit_code_of_failure(exit_code) {}
  // NOLINTEND(google-explicit-constructor)

  Status status;
  int exit_code_of_failure = kFailure;
};

// A verb declares its options on `app`; what it returns is run if the user asked for it. What only
// the options together can tell to be wrong is thrown by app.callback as a CLI::ParseError.
using Verb = std::function<Outcome()>;
Verb AddBatch(CLI::App& app);
Verb AddBench(CLI::App& app);
Verb AddGenerate(CLI::App& app);
Verb AddInspect(CLI::App& app);
Verb AddLogits(CLI::App& app);
Verb AddPlan(CLI::App& app);
Verb AddProve(CLI::App& app);
Verb AddTokenize(CLI::App& app);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_CLI_H_
