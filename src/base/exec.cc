#include "base/exec.h"

#include "base/check.h"
#include "base/threads.h"

namespace kvick {

Result<Exec> MakeExec(std::string_view isa_name, int num_threads) {
  constexpr int kMaxThreads = 1024;
  KVICK_ASSIGN_OR_RETURN(const Isa isa, ParseIsa(isa_name));
  if (num_threads < 0 || num_threads > kMaxThreads) {
    return Fail(ErrorCode::kInvalidArgument, "num_threads: expected 0 (all cores) to {}, got {}",
                kMaxThreads, num_threads);
  }
  return Exec{isa, num_threads > 0 ? num_threads : NumUsableCores()};
}

}  // namespace kvick
