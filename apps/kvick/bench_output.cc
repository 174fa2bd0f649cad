// What a bench prints, for people and for programs.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/isa.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "measure/caches.h"
#include "measure/processor_name.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

nlohmann::json RowJson(const BenchRow& row) {
  nlohmann::json json = {
      {"name", row.name},
      {"case", row.variant},
      {"quiet_us", row.timing.quiet_us()},
      {"median_us", row.timing.median_us()},
      {"quartiles_us", {row.timing.quantile_us(0.25), row.timing.quantile_us(0.75)}},
      {"share", row.has_share() ? nlohmann::json(row.share.value) : nlohmann::json()},
      {"share_of", row.limit},
      {"spread", row.share.spread},
      {"rounds", row.share.num_rounds}};
  if (row.work.bytes > 0) json["gbps"] = row.gbps();
  if (row.work.total_flops() > 0) json["gflops"] = row.gflops();
  if (row.num_tokens > 0) json["tokens_per_s"] = row.tokens_per_s();
  AddTrust(json, row.Distrust());
  return json;
}

// An empty cell for what a row has none of.
std::string Cell(double value, int num_decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, num_decimals) : "";
}

void PrintRows(std::span<const BenchRow> rows) {
  size_t name_width = 0, variant_width = 0;
  for (const BenchRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    variant_width = std::max(variant_width, row.variant.size());
  }
  const bool has_tokens =
      std::ranges::any_of(rows, [](const BenchRow& row) { return row.num_tokens > 0; });
  const auto tokens = [&](const std::string& cell) {
    return has_tokens ? fmt::format("  {:>10}", cell) : "";
  };
  fmt::print("\n{:{}}  {:{}}  {:>12}  {:>12}  {:>8}  {:>8}{}  {:>7}  {:>8}  of\n", "", name_width,
             "", variant_width, "quiet us", "median us", "GB/s", "GFLOPS", tokens("tokens/s"),
             "share %", "spread %");
  for (const BenchRow& row : rows) {
    const std::string distrust = row.Distrust();
    fmt::print("{:{}}  {:{}}  {:>12.1f}  {:>12.1f}  {:>8}  {:>8}{}  {:>7}  {:>8.1f}  {}{}\n",
               row.name, name_width, row.variant, variant_width, row.timing.quiet_us(),
               row.timing.median_us(), Cell(row.gbps(), 2), Cell(row.gflops(), 1),
               tokens(Cell(row.tokens_per_s(), 2)),
               row.has_share() ? Cell(100 * row.share.value, 1) : "-", 100 * row.share.spread,
               row.limit, distrust.empty() ? "" : "  untrusted: " + distrust);
  }
}

void PrintForPeople(const BenchReport& report) {
  fmt::print("{}\n", MachineLine(report.setup));
  fmt::print("last-level caches {} MiB, data {} MiB\n", LastLevelCacheBytes() >> 20,
             report.setup.working_set_bytes >> 20);
  PrintRows(report.rows);
  PrintRatios(report.ratios);
}

void PrintAsJson(const BenchReport& report) {
  nlohmann::json rows = nlohmann::json::array(), limits = nlohmann::json::object();
  for (const BenchRow& row : report.rows) rows.push_back(RowJson(row));
  for (const auto& [name, limit] : report.limits) {
    limits[name] = {{limit.multiplication ? "gflops" : "gbps", limit.rate()}};
  }
  nlohmann::json machine = MachineJson(report.setup);
  machine["working_set_bytes"] = report.setup.working_set_bytes;
  PrintJson(nlohmann::json{{"machine", std::move(machine)},
                           {"limits", std::move(limits)},
                           {"rows", std::move(rows)},
                           {"ratios", RatiosJson(report.ratios)}});
}

}  // namespace

Outcome BenchReport::Finish(const BenchOptions& options) const {
  options.json ? PrintAsJson(*this) : PrintForPeople(*this);
  if (!options.strict) return Status();
  TrustCount count;
  const auto add = [&count](const std::string& distrust) {
    ++count.num_all;
    if (!distrust.empty()) ++count.num_untrusted;
  };
  for (const BenchRow& row : rows) add(row.Distrust());
  for (const BenchRatio& ratio : ratios) add(ratio.distrust);
  return count.Strictly();
}

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
  for (const BenchRatio& ratio : ratios) {
    fmt::print("{}  {:.3f}{}\n", ratio.name, ratio.value,
               ratio.distrust.empty() ? "" : "  untrusted: " + ratio.distrust);
  }
}

nlohmann::json RatiosJson(std::span<const BenchRatio> ratios) {
  nlohmann::json json = nlohmann::json::array();
  for (const BenchRatio& ratio : ratios) {
    json.push_back({{"name", ratio.name}, {"value", ratio.value}, {"spread", ratio.spread}});
    AddTrust(json.back(), ratio.distrust);
  }
  return json;
}

void AddTrust(nlohmann::json& json, const std::string& distrust) {
  json["trusted"] = distrust.empty();
  if (!distrust.empty()) json["distrust"] = distrust;
}

}  // namespace kvick::cli
