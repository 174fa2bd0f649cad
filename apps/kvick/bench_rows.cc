#include "bench_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/isa.h"
#include "bench_data.h"
#include "measure/caches.h"
#include "measure/matrix_limit.h"
#include "measure/processor_name.h"
#include "measure/read_limit.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

const char* RateKey(WorkUnit unit) { return unit == WorkUnit::kBytes ? "gbps" : "gflops"; }
const char* RateUnit(WorkUnit unit) { return unit == WorkUnit::kBytes ? "GB/s" : "GFLOPS"; }

double TokensPerSecond(const BenchRow& row) {
  return row.num_tokens / row.timing.median_us() * 1e6;
}

nlohmann::json RowJson(const BenchRow& row) {
  nlohmann::json json = {
      {"name", row.name},
      {"case", row.variant},
      {"median_us", row.timing.median_us()},
      {"quartiles_us", {row.timing.quantile_us(0.25), row.timing.quantile_us(0.75)}},
      {RateKey(row.unit), row.rate()},
      {"share", row.share},
      {"share_of", row.limit}};
  if (row.num_tokens > 0) json["tokens_per_s"] = TokensPerSecond(row);
  return json;
}

// The rows of one limit, under names of columns that say their units.
void PrintRows(const BenchRow* begin, const BenchRow* end) {
  size_t name_width = 0, variant_width = 0;
  for (const BenchRow* row = begin; row != end; ++row) {
    name_width = std::max(name_width, row->name.size());
    variant_width = std::max(variant_width, row->variant.size());
  }
  const bool has_tokens =
      std::any_of(begin, end, [](const BenchRow& row) { return row.num_tokens > 0; });
  fmt::print("\n{:{}}  {:{}}  {:>12}  {:>23}  {:>8}  {:>11}{}\n", "", name_width, "", variant_width,
             "median us", "quartiles us", RateUnit(begin->unit), "% of " + begin->limit,
             has_tokens ? fmt::format("  {:>10}", "tokens/s") : "");
  for (const BenchRow* row = begin; row != end; ++row) {
    fmt::print("{:{}}  {:{}}  {:>12.1f}  {:>23}  {:>8.2f}  {:>11.1f}{}\n", row->name, name_width,
               row->variant, variant_width, row->timing.median_us(),
               fmt::format("{:.1f} - {:.1f}", row->timing.quantile_us(0.25),
                           row->timing.quantile_us(0.75)),
               row->rate(), 100 * row->share,
               has_tokens ? fmt::format("  {:>10.2f}", TokensPerSecond(*row)) : "");
  }
}

}  // namespace

std::string MachineLine(const BenchSetup& setup) {
  return fmt::format("{}, {} on {}, {}", ProcessorName(), NumericsName(setup.exec),
                     IsaName(setup.exec.isa), Counted(setup.exec.num_threads, "thread"));
}

nlohmann::json MachineJson(const BenchSetup& setup) {
  return {{"processor", ProcessorName()},
          {"numerics", NumericsName(setup.exec)},
          {"isa", IsaName(setup.exec.isa)},
          {"threads", setup.exec.num_threads},
          {"cache_bytes", LastLevelCacheBytes()}};
}

void PrintRatios(std::span<const BenchRatio> ratios) {
  if (!ratios.empty()) fmt::print("\n");
  for (const BenchRatio& ratio : ratios) fmt::print("{}  {:.3f}\n", ratio.name, ratio.value);
}

nlohmann::json RatiosJson(std::span<const BenchRatio> ratios) {
  nlohmann::json json = nlohmann::json::array();
  for (const BenchRatio& r : ratios) json.push_back({{"name", r.name}, {"value", r.value}});
  return json;
}

Result<BenchSetup> BenchSetup::From(const BenchOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(options.exec));
  const auto wanted = static_cast<int64_t>(options.working_set_bytes);
  return BenchSetup{exec, wanted > 0 ? wanted : BytesBeyondCaches(), options.row_seconds};
}

Status BenchReport::Time(const BenchLimit& limit, std::vector<BenchCase> cases) {
  std::vector<Contender> contenders = {limit.contender};
  for (BenchCase& c : cases) contenders.push_back(std::move(c.contender));
  InterleavedOptions options;
  options.seconds = setup.row_seconds * static_cast<double>(contenders.size());
  KVICK_ASSIGN_OR_RETURN(std::vector<Timing> timings, TimeInterleaved(contenders, options));
  MeasuredLimit& measured = limits[limit.name];
  measured.work = limit.work;
  measured.timing.round_us.insert(measured.timing.round_us.end(), timings[0].round_us.begin(),
                                  timings[0].round_us.end());
  for (size_t i = 0; i < cases.size(); ++i) {
    BenchCase& c = cases[i];
    Timing& timing = timings[i + 1];
    const double share = c.work / limit.work * MedianRatio(timings[0], timing);
    rows.push_back({std::move(c.name), std::move(c.variant), limit.name, limit.unit, c.work,
                    c.num_tokens, std::move(timing), share});
  }
  return {};
}

void BenchReport::AddRatio(std::string ratio_name, const BenchRow& a, const BenchRow& b) {
  ratios.push_back({std::move(ratio_name), a.work / b.work * MedianRatio(b.timing, a.timing)});
}

void BenchReport::Print() const {
  fmt::print("{}\n", MachineLine(setup));
  fmt::print("last-level caches {} MiB, data {} MiB\n", LastLevelCacheBytes() >> 20,
             setup.working_set_bytes >> 20);
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].limit == rows[begin].limit) ++end;
    PrintRows(rows.data() + begin, rows.data() + end);
  }
  PrintRatios(ratios);
}

void BenchReport::PrintJson() const {
  nlohmann::json json_rows = nlohmann::json::array();
  for (const BenchRow& row : rows) json_rows.push_back(RowJson(row));
  const auto limit = [this](const char* name) {
    const auto found = limits.find(name);
    return found == limits.end() ? nlohmann::json() : nlohmann::json(found->second.rate());
  };
  nlohmann::json machine = MachineJson(setup);
  machine["working_set_bytes"] = setup.working_set_bytes;
  cli::PrintJson({{"machine", std::move(machine)},
                  {"limits",
                   {{"read_gbps", limit("read")},
                    {"matrix_gflops", limit("matrix")},
                    {"memcpy_gbps", limit("memcpy")}}},
                  {"rows", std::move(json_rows)},
                  {"ratios", RatiosJson(ratios)}});
}

Result<std::shared_ptr<ReadLimit>> MakeReadBuffer(const BenchSetup& setup) {
  KVICK_ASSIGN_OR_RETURN(ReadLimit limit, ReadLimit::Create(setup.working_set_bytes));
  return std::make_shared<ReadLimit>(std::move(limit));
}

BenchLimit ReadBenchLimit(std::shared_ptr<ReadLimit> buffer, const Exec& exec) {
  BenchLimit limit{"read", WorkUnit::kBytes, static_cast<double>(buffer->pass_bytes())};
  limit.contender.pass = [buffer = std::move(buffer), num_threads = exec.num_threads]() -> Status {
    buffer->Pass(num_threads);
    return {};
  };
  return limit;
}

BenchLimit MatrixBenchLimit(const Exec& exec, DType dtype) {
  const MatrixLimit matrix(exec, dtype);
  BenchLimit limit{"matrix", WorkUnit::kFlops, matrix.flops_per_pass()};
  limit.contender.pass = [matrix]() -> Status {
    matrix.Pass();
    return {};
  };
  return limit;
}

}  // namespace kvick::cli
