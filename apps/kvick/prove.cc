// kvick prove: shows on this machine that the cache changes no answer, and what the cache costs.

#include <fmt/chrono.h>
#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>

#include "base/allocation_counter.h"
#include "base/check.h"
#include "cli.h"
#include "demo_model.h"
#include "help.h"
#include "options.h"
#include "output_file.h"
#include "prove/prover.h"
#include "prove/report.h"
#include "terminal.h"
#include "version.h"

namespace kvick::cli {
namespace {

struct ProveVerbOptions {
  std::string model;
  std::string inject;
  std::string report;
  ProveOptions prove;
  bool json = false;
};

// null for what was not judged.
nlohmann::json HoldsJson(Verdict verdict) {
  if (verdict == Verdict::kNotJudged) return nullptr;
  return verdict == Verdict::kHolds;
}

nlohmann::json ClaimsJson(const ProofSection& section) {
  nlohmann::json claims = nlohmann::json::array();
  for (const Claim& claim : section.claims) {
    claims.push_back({{"statement", claim.statement},
                      {"measured", claim.measured},
                      {"explanation", claim.explanation},
                      {"verdict", VerdictName(claim.verdict)},
                      {"holds", HoldsJson(claim.verdict)}});
  }
  return claims;
}

nlohmann::json UsageJson(const KvUsage& usage, int64_t num_fit) {
  return {{"reserved_bytes", usage.reserved_bytes},
          {"used_bytes", usage.used_bytes},
          {"empty_bytes", usage.empty_bytes},
          {"requests_that_fit", num_fit}};
}

nlohmann::json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json LogitsJson(const LogitsHash& logits) {
  return {{"tokens", logits.num_tokens},
          {"sha256", TextOrNull(logits.sha256)},
          {"recorded_sha256", TextOrNull(logits.recorded)}};
}

nlohmann::json ProofJson(const Proof& proof) {
  nlohmann::json sections = nlohmann::json::array();
  for (const ProofSection& section : proof.sections) {
    sections.push_back({{"name", section.name},
                        {"title", section.title},
                        {"verdict", VerdictName(section.verdict())},
                        {"holds", HoldsJson(section.verdict())},
                        {"claims", ClaimsJson(section)}});
  }
  nlohmann::json bugs = nlohmann::json::array();
  for (const BugTrace& bug : proof.bugs) {
    bugs.push_back({{"name", bug.name},
                    {"description", bug.description},
                    {"first_wrong_logits", bug.first_wrong_logits},
                    {"first_wrong_token", bug.first_wrong_token},
                    {"healthy_text", bug.healthy.Whole()},
                    {"planted_text", bug.planted.Whole()}});
  }
  const WasteFigures& waste = proof.waste;
  return {{"verdict", VerdictName(proof.verdict())},
          {"holds", HoldsJson(proof.verdict())},
          {"made_by", proof.made_by},
          {"date", proof.date},
          {"model", proof.model_path},
          {"processor", proof.processor},
          {"numerics", proof.numerics},
          {"isa", proof.isa},
          {"threads", proof.num_threads},
          {"read_gbps", proof.read_gbps},
          {"logits", LogitsJson(proof.logits)},
          {"injected", TextOrNull(proof.injected)},
          {"sections", std::move(sections)},
          {"bugs", std::move(bugs)},
          {"step_times",
           {{"positions", proof.step_times.positions},
            {"cached_us", proof.step_times.cached_us},
            {"recomputed_us", proof.step_times.recomputed_us},
            {"concatenated_us", proof.step_times.concatenated_us}}},
          {"hidden_cost",
           {{"contiguous", UsageJson(waste.contiguous, waste.contiguous_requests_that_fit)},
            {"paged", UsageJson(waste.paged, waste.paged_requests_that_fit)}}}};
}

// "holds", "FAILS" or "not judged", coloured where a terminal shows it.
std::string VerdictText(Verdict verdict) {
  const std::string text(verdict == Verdict::kFails ? "FAILS" : VerdictName(verdict));
  if (!ShowsColors(STDOUT_FILENO)) return text;
  const auto color = verdict == Verdict::kHolds   ? fmt::terminal_color::green
                     : verdict == Verdict::kFails ? fmt::terminal_color::red
                                                  : fmt::terminal_color::yellow;
  return fmt::format(fmt::emphasis::bold | fg(color), "{}", text);
}

void PrintSection(const ProofSection& section) {
  fmt::print("\n{}\n", section.title);
  std::string_view explanation;
  for (const Claim& claim : section.claims) {
    if (claim.explanation != explanation) fmt::print("  {}\n", Wrapped(claim.explanation, 2));
    explanation = claim.explanation;
    fmt::print("    {}  {}\n           {}\n", VerdictText(claim.verdict), claim.statement,
               claim.measured);
  }
}

void PrintProof(const Proof& proof) {
  fmt::print("kvick    {}, {}\nmodel    {}\nmachine  {}\n", proof.made_by, proof.date,
             proof.model_path, DescribeMachine(proof));
  if (!proof.logits.sha256.empty()) {
    fmt::print("logits   {}\n", Wrapped(DescribeLogits(proof), 9));
  }
  if (!proof.injected.empty()) fmt::print("planted  {}\n", proof.injected);
  for (const ProofSection& section : proof.sections) PrintSection(section);
  fmt::print("\n{}  {}\n", VerdictText(proof.verdict()), DescribeCount(proof.CountClaims()));
}

Status RunProve(const ProveVerbOptions& options) {
  ProveOptions prove = options.prove;
  if (!options.inject.empty()) {
    KVICK_ASSIGN_OR_RETURN(prove.inject, ParsePlantedBug(options.inject));
  }
  if (!options.report.empty()) KVICK_RETURN_IF_ERROR(CheckWritable(options.report));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model));
  Progress progress("proving");
  int64_t num_sections = 0;
  prove.on_section = [&](std::string_view) { progress.Show(num_sections++, 10); };
  prove.num_allocations = NumAllocations;
  if (options.model.empty()) prove.recorded_hashes = DemoLogitsHashes();
  KVICK_ASSIGN_OR_RETURN(Proof proof, Prove(*model, prove));
  progress.Clear();
  proof.model_path = options.model.empty() ? kDemoModelName : ShownName(options.model);
  proof.made_by = fmt::format("{} ({})", kVersion, kCommit);
  proof.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  if (options.json) {
    PrintJson(ProofJson(proof));
  } else {
    PrintProof(proof);
  }
  if (!options.report.empty()) {
    KVICK_RETURN_IF_ERROR(WriteFile(options.report, {RenderReport(proof)}));
  }
  if (proof.verdict() != Verdict::kFails) return {};
  return Fail(ErrorCode::kInternal, "the proof fails{}",
              proof.injected.empty() ? "" : ", as it must with a planted bug");
}

}  // namespace

Verb AddProve(CLI::App& app) {
  auto options = std::make_shared<ProveVerbOptions>();
  AddExample(app, "kvick prove model.gguf --report proof.html");
  AddModelOption(app, options->model);
  app.add_option("-n,--predict", options->prove.num_tokens, "new tokens of each completion")
      ->transform(IntAtLeast(2))
      ->capture_default_str();
  app.add_option("--inject", options->inject, "plant this bug: the proof must fail")
      ->type_name("BUG")
      ->transform(OneOf({"rope", "mask", "reset", "heads"}));
  AddExecOptions(app, options->prove.exec);
  app.add_option("--report", options->report, "also write the proof as an HTML page")
      ->type_name("FILE")
      ->check(NotEmpty());
  AddJsonFlag(app, options->json);
  app.callback([options] {
    if (options->report == "-") {
      throw CLI::ValidationError("--report: expected a file, got stdout");
    }
  });
  return [options] { return RunProve(*options); };
}

}  // namespace kvick::cli
