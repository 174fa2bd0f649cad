#include "bench_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "measure/caches.h"
#include "measure/read_limit.h"

namespace kvick::cli {
namespace {

constexpr double kMaxShare = 1.05;

}  // namespace

bool BenchRow::has_share() const { return share.value <= kMaxShare; }

std::string BenchRow::Distrust() const {
  if (has_share()) return share.Distrust();
  return fmt::format("expected at most {:.0f} % of the limit, got {:.0f} %", 100 * kMaxShare,
                     100 * share.value);
}

Result<BenchSetup> BenchSetup::From(const BenchOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(options.exec));
  const auto wanted = static_cast<int64_t>(options.working_set_bytes);
  return BenchSetup{exec, wanted > 0 ? wanted : BytesBeyondCaches(), options.row_seconds};
}

Status BenchReport::Time(const BenchLimit& memory, std::vector<BenchCase> cases) {
  std::vector<BenchWork> works;
  for (const BenchCase& c : cases) works.push_back(c.work);
  KVICK_ASSIGN_OR_RETURN(const std::vector<BenchLimit> timed_limits,
                         LimitsThatMayBind(memory, setup.exec, works));
  std::vector<Contender> contenders;
  for (const BenchLimit& limit : timed_limits) contenders.push_back(limit.contender);
  for (BenchCase& c : cases) contenders.push_back(std::move(c.contender));
  const double seconds = setup.row_seconds * static_cast<double>(contenders.size());
  KVICK_ASSIGN_OR_RETURN(std::vector<Timing> timings,
                         TimeInterleaved(contenders, {.seconds = seconds}));
  const std::span limit_timings = std::span(timings).first(timed_limits.size());
  for (size_t i = 0; i < timed_limits.size(); ++i) {
    MeasuredLimit& measured = limits[timed_limits[i].name];
    measured.multiplication = timed_limits[i].multiplication;
    measured.work = timed_limits[i].work;
    std::ranges::copy(limit_timings[i].slice_us, std::back_inserter(measured.timing.slice_us));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    BenchCase& c = cases[i];
    LimitTimes limit = BindingLimit(c.work, timed_limits, limit_timings);
    Timing& timing = timings[timed_limits.size() + i];
    const QuietRatio share = CompareQuiet(limit.timing, timing);
    rows.push_back({std::move(c.name), std::move(c.variant), std::move(c.work), c.num_tokens,
                    std::move(timing), std::move(limit.name), share});
  }
  return {};
}

void BenchReport::AddRatio(std::string ratio_name, const BenchRow& a, const BenchRow& b) {
  const QuietRatio times = CompareQuiet(b.timing, a.timing);
  const double work =
      a.work.bytes > 0 ? a.work.bytes / b.work.bytes : a.work.total_flops() / b.work.total_flops();
  ratios.push_back({std::move(ratio_name), work * times.value, times.spread, times.Distrust()});
}

Outcome TrustCount::Strictly() const {
  if (num_untrusted == 0) return Status();
  return {Fail(ErrorCode::kInternal,
               "bench --strict: expected rows that can be trusted, got {} of {} that cannot",
               num_untrusted, num_all),
          kUntrusted};
}

Result<std::shared_ptr<ReadLimit>> MakeReadBuffer(const BenchSetup& setup) {
  KVICK_ASSIGN_OR_RETURN(ReadLimit limit, ReadLimit::Create(setup.working_set_bytes));
  return std::make_shared<ReadLimit>(std::move(limit));
}

}  // namespace kvick::cli
