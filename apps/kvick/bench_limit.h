#ifndef KVICK_APPS_KVICK_BENCH_LIMIT_H_
#define KVICK_APPS_KVICK_BENCH_LIMIT_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/exec.h"
#include "kvick/status.h"
#include "measure/interleaved.h"
#include "measure/multiply_limit.h"
#include "measure/read_limit.h"

namespace kvick::cli {

// What a pass must do: bytes to read (or to copy, where the limit is memcpy) and numbers to
// multiply. Reading and multiplying go on side by side; multiplications of different kinds share
// the ports of a core, and follow each other.
struct BenchWork {
  double bytes = 0;
  std::map<Multiplication, double> flops{};

  double total_flops() const;
};

// What the machine does at best: a contender.
struct BenchLimit {
  std::string name;                                // "read", "memcpy", or of the multiplication
  std::optional<Multiplication> multiplication{};  // nullopt: bytes
  double work = 0;                                 // of a pass: bytes or FLOPs
  Contender contender{};

  // Of a pass that does `needed`.
  double WorkIn(const BenchWork& needed) const;
};

// Plain reads of memory.
BenchLimit ReadBenchLimit(std::shared_ptr<ReadLimit> buffer, const Exec& exec);
// Multiply-adds on registers.
BenchLimit MultiplyBenchLimit(const Exec& exec, Multiplication multiplication);

// `memory` and the multiplications in `works`, as far as one of them may take most of the time:
// what would be done four times as fast as the rest by a first look is left out. Errors: of a
// contender.
Result<std::vector<BenchLimit>> LimitsThatMayBind(const BenchLimit& memory, const Exec& exec,
                                                  std::span<const BenchWork> works);

// The least time that a pass can take, round by round.
struct LimitTimes {
  std::string name;  // "read", "f32 fma", "bf16 dot + f32 fma"
  Timing timing;
};

// The longer of reading and of multiplying. timings[i] is of limits[i].
LimitTimes BindingLimit(const BenchWork& work, std::span<const BenchLimit> limits,
                        std::span<const Timing> timings);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_LIMIT_H_
