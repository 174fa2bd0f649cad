#include "bench_limit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvick::cli {
namespace {

// The best of a few passes.
Result<double> RoughPassUs(const BenchLimit& limit) {
  constexpr int kNumPasses = 3;
  KVICK_ASSIGN_OR_RETURN(const std::vector<Timing> timings,
                         TimeInterleaved({&limit.contender, 1},
                                         {.seconds = 0, .slice_ms = 0, .min_rounds = kNumPasses}));
  return timings.front().quantile_us(0);
}

}  // namespace

double BenchWork::total_flops() const {
  double total = 0;
  for (const auto& [multiplication, of_kind] : flops) total += of_kind;
  return total;
}

double BenchLimit::WorkIn(const BenchWork& needed) const {
  if (!multiplication) return needed.bytes;
  const auto found = needed.flops.find(*multiplication);
  return found == needed.flops.end() ? 0 : found->second;
}

BenchLimit ReadBenchLimit(std::shared_ptr<ReadLimit> buffer, const Exec& exec) {
  BenchLimit limit{.name = "read", .work = static_cast<double>(buffer->pass_bytes())};
  limit.contender.pass = [buffer = std::move(buffer), num_threads = exec.num_threads]() -> Status {
    buffer->Pass(num_threads);
    return {};
  };
  return limit;
}

BenchLimit MultiplyBenchLimit(const Exec& exec, Multiplication multiplication) {
  const MultiplyLimit registers(exec, multiplication);
  BenchLimit limit{std::string(MultiplicationName(multiplication)), multiplication,
                   registers.flops_per_pass()};
  limit.contender.pass = [registers]() -> Status {
    registers.Pass();
    return {};
  };
  return limit;
}

Result<std::vector<BenchLimit>> LimitsThatMayBind(const BenchLimit& memory, const Exec& exec,
                                                  std::span<const BenchWork> works) {
  constexpr double kFar = 4;
  std::map<Multiplication, BenchLimit> multiplying;
  std::vector<double> multiply_us(works.size(), 0.0);
  for (const BenchWork& work : works) {
    for (const auto& [kind, flops] : work.flops) {
      if (flops > 0) multiplying.try_emplace(kind, MultiplyBenchLimit(exec, kind));
    }
  }
  for (const auto& [kind, limit] : multiplying) {
    KVICK_ASSIGN_OR_RETURN(const double pass_us, RoughPassUs(limit));
    for (size_t i = 0; i < works.size(); ++i) {
      multiply_us[i] += limit.WorkIn(works[i]) / limit.work * pass_us;
    }
  }
  KVICK_ASSIGN_OR_RETURN(const double memory_pass_us, RoughPassUs(memory));
  bool may_memory_bind = false, may_multiplying_bind = false;
  for (size_t i = 0; i < works.size(); ++i) {
    const double memory_us = works[i].bytes / memory.work * memory_pass_us;
    may_memory_bind |= memory_us * kFar > multiply_us[i];
    may_multiplying_bind |= multiply_us[i] * kFar > memory_us;
  }
  std::vector<BenchLimit> limits;
  if (may_memory_bind) limits.push_back(memory);
  if (!may_multiplying_bind) return limits;
  for (auto& [kind, limit] : multiplying) limits.push_back(std::move(limit));
  return limits;
}

LimitTimes BindingLimit(const BenchWork& work, std::span<const BenchLimit> limits,
                        std::span<const Timing> timings) {
  const size_t num_rounds = timings.front().slice_us.size();
  const Timing none{std::vector<double>(num_rounds, 0.0)};
  LimitTimes reading{"", none}, multiplying{"", none};
  for (size_t i = 0; i < limits.size(); ++i) {
    const double num_passes = limits[i].WorkIn(work) / limits[i].work;
    if (num_passes == 0) continue;
    LimitTimes& times = limits[i].multiplication ? multiplying : reading;
    times.name.append(times.name.empty() ? "" : " + ").append(limits[i].name);
    for (size_t round = 0; round < num_rounds; ++round) {
      times.timing.slice_us[round] += num_passes * timings[i].slice_us[round];
    }
  }
  return reading.timing.quiet_us() < multiplying.timing.quiet_us() ? multiplying : reading;
}

}  // namespace kvick::cli
