// Fills report.html, which has the text and the style, with numbers and shapes.

#include "prove/report.h"

#include <ctemplate/template.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/byte_text.h"
#include "base/check.h"
#include "prove/chart.h"

namespace kvick {

extern const char kReportTemplate[];

namespace {

using ctemplate::TemplateDictionary;

// Every drawing is made twice, for wide and for narrow screens: text in a drawing that is scaled
// down is too small to read.
struct Drawing {
  const char* screen;  // its CSS class
  double width;
};
constexpr std::array kDrawings = {Drawing{"wide", 760}, Drawing{"narrow", 360}};

void Set(TemplateDictionary& dict, const char* name, std::string_view value) {
  dict.SetValue(name, ctemplate::TemplateString(value.data(), value.size()));
}

void SetPlace(TemplateDictionary& dict, const char* name, double place) {
  dict.SetFormattedValue(name, "%.1f", place);
}

TemplateDictionary& Add(TemplateDictionary& dict, const char* section) {
  return *dict.AddSectionDictionary(section);
}

// "460 µs", "270 ms".
std::string Duration(double microseconds) {
  if (microseconds < 1e3) return fmt::format("{:.0f} µs", microseconds);
  if (microseconds < 1e6) return fmt::format("{:.3g} ms", microseconds / 1e3);
  return fmt::format("{:.3g} s", microseconds / 1e6);
}

// --- The time of a step ---

struct Line {
  const char* name;  // its CSS class
  const char* label;
  const std::vector<double>& times_us;
};

std::array<Line, 3> LinesOf(const StepTimes& times) {
  return {Line{"recomputed", "no cache", times.recomputed_us},
          Line{"concatenated", "concatenated", times.concatenated_us},
          Line{"cached", "kvick", times.cached_us}};
}

bool HasAllWays(const StepTimes& times) {
  return std::ranges::none_of(LinesOf(times),
                              [](const Line& line) { return line.times_us.empty(); });
}

Scale::Interval RangeOf(const StepTimes& times) {
  Scale::Interval range{1e18, 0};
  for (const Line& line : LinesOf(times)) {
    for (const double time : line.times_us) {
      range = {std::min(range.low, time), std::max(range.high, time)};
    }
  }
  return {range.low / 1.5, range.high * 1.5};
}

void AddTicks(TemplateDictionary& chart, const char* section, std::span<const Tick> ticks) {
  for (const Tick& tick : ticks) {
    TemplateDictionary& dict = Add(chart, section);
    SetPlace(dict, "AT", tick.at);
    Set(dict, "LABEL", tick.label);
  }
}

void AddLines(TemplateDictionary& chart, const StepTimes& times, const ChartFrame& frame,
              const Scale& x, const Scale& y) {
  const auto lines = LinesOf(times);
  std::array<double, lines.size()> label_ys{};
  for (size_t i = 0; i < lines.size(); ++i) label_ys[i] = y(lines[i].times_us.back());
  SpreadApart(label_ys, 34, frame.plot_bottom() - 20);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<double>& line_us = lines[i].times_us;
    std::vector<double> xs, ys;
    for (size_t point = 0; point < line_us.size(); ++point) {
      xs.push_back(x(static_cast<double>(times.positions[point])));
      ys.push_back(y(line_us[point]));
    }
    TemplateDictionary& dict = Add(chart, "LINE");
    Set(dict, "NAME", lines[i].name);
    Set(dict, "LABEL", lines[i].label);
    Set(dict, "LAST", Duration(line_us.back()));
    Set(dict, "POINTS", Points(xs, ys));
    SetPlace(dict, "LABEL_X", frame.plot_right() + 8);
    SetPlace(dict, "LABEL_Y", label_ys[i] + 4);
    SetPlace(dict, "LABEL_Y2", label_ys[i] + 20);
    SetPlace(dict, "END_X", xs.back());
    SetPlace(dict, "END_Y", ys.back());
  }
}

void AddStepChart(TemplateDictionary& page, const StepTimes& times, const Drawing& drawing) {
  const ChartFrame frame{drawing.width, 320, 60, 112, 12, 44};
  const auto last = static_cast<double>(times.positions.back());
  const Scale::Interval range = RangeOf(times);
  const Scale x = Scale::Linear({0, last}, {frame.left, frame.plot_right()});
  const Scale y = Scale::Log(range, {frame.plot_bottom(), frame.top});

  TemplateDictionary& chart = Add(page, "STEP_CHART");
  Set(chart, "SCREEN", drawing.screen);
  SetPlace(chart, "WIDTH", frame.width);
  SetPlace(chart, "HEIGHT", frame.height);
  SetPlace(chart, "LEFT", frame.left);
  SetPlace(chart, "LABEL_RIGHT", frame.left - 8);
  SetPlace(chart, "RIGHT", frame.plot_right());
  SetPlace(chart, "BOTTOM", frame.plot_bottom());
  SetPlace(chart, "BELOW", frame.plot_bottom() + 18);
  SetPlace(chart, "TITLE_X", (frame.left + frame.plot_right()) / 2);
  SetPlace(chart, "TITLE_Y", frame.height - 6);
  std::vector<Tick> ticks;
  for (const double tick : RoundTicks(last, drawing.width > 500 ? 8 : 4)) {
    ticks.push_back({x(tick), fmt::format("{:.0f}", tick)});
  }
  AddTicks(chart, "X_TICK", ticks);
  ticks.clear();
  for (const double tick : DecadeTicks(range.low, range.high)) {
    ticks.push_back({y(tick), Duration(tick)});
  }
  AddTicks(chart, "Y_TICK", ticks);
  AddLines(chart, times, frame, x, y);
}

// --- Reserved against used ---

struct Bar {
  const char* label;
  const KvUsage& usage;
  int64_t num_fit;
};

std::array<Bar, 2> BarsOf(const WasteFigures& waste) {
  return {Bar{"reserved whole", waste.contiguous, waste.contiguous_requests_that_fit},
          Bar{"blocks of 16 tokens", waste.paged, waste.paged_requests_that_fit}};
}

void AddWasteChart(TemplateDictionary& page, const WasteFigures& waste, const Drawing& drawing) {
  constexpr double kRowHeight = 64, kBarTop = 24, kBarHeight = 28, kEdge = 2;
  TemplateDictionary& chart = Add(page, "WASTE_CHART");
  Set(chart, "SCREEN", drawing.screen);
  SetPlace(chart, "WIDTH", drawing.width);
  SetPlace(chart, "HEIGHT", kRowHeight * 2);
  SetPlace(chart, "BAR_HEIGHT", kBarHeight);
  SetPlace(chart, "LEFT", kEdge);
  SetPlace(chart, "RIGHT", drawing.width - kEdge);
  const Scale x =
      Scale::Linear({0, static_cast<double>(waste.memory_bytes)}, {0, drawing.width - 2 * kEdge});
  double top = 0;
  for (const Bar& bar : BarsOf(waste)) {
    TemplateDictionary& dict = Add(chart, "BAR");
    Set(dict, "LABEL", bar.label);
    Set(dict, "RESERVED", ByteText(bar.usage.reserved_bytes));
    Set(dict, "EMPTY", ByteText(bar.usage.empty_bytes));
    SetPlace(dict, "RESERVED_WIDTH", x(static_cast<double>(bar.usage.reserved_bytes)));
    SetPlace(dict, "USED_WIDTH", x(static_cast<double>(bar.usage.used_bytes)));
    SetPlace(dict, "LABEL_Y", top + kBarTop - 8);
    SetPlace(dict, "TOP", top + kBarTop);
    top += kRowHeight;
  }
}

// One square per request.
void AddFitChart(TemplateDictionary& page, const WasteFigures& waste, const Drawing& drawing) {
  constexpr double kCell = 22, kSquare = 18, kLabelHeight = 24, kGap = 12;
  const auto num_columns = static_cast<int64_t>(drawing.width / kCell);
  TemplateDictionary& chart = Add(page, "FIT_CHART");
  Set(chart, "SCREEN", drawing.screen);
  SetPlace(chart, "WIDTH", drawing.width);
  SetPlace(chart, "SQUARE", kSquare);
  double top = 0;
  for (const Bar& bar : BarsOf(waste)) {
    TemplateDictionary& group = Add(chart, "GROUP");
    Set(group, "LABEL", fmt::format("{} requests, {}", bar.num_fit, bar.label));
    SetPlace(group, "LABEL_Y", top + kLabelHeight - 8);
    top += kLabelHeight;
    for (int64_t i = 0; i < bar.num_fit; ++i) {
      TemplateDictionary& square = Add(group, "REQUEST");
      SetPlace(square, "X", static_cast<double>(i % num_columns) * kCell + 1);
      SetPlace(square, "Y", top + static_cast<double>(i / num_columns) * kCell);
    }
    top += std::ceil(static_cast<double>(bar.num_fit) / static_cast<double>(num_columns)) * kCell;
    top += kGap;
  }
  SetPlace(chart, "HEIGHT", top);
}

// --- Text ---

void SetText(TemplateDictionary& bug, const char* section, const SplitText& text) {
  TemplateDictionary& dict = Add(bug, section);
  Set(dict, "SAME", text.same);
  if (!text.token.empty()) Set(Add(dict, "WRONG"), "TOKEN", text.token);
  Set(dict, "TOKEN", text.token);
  Set(dict, "REST", text.rest);
}

void AddBug(TemplateDictionary& page, const BugTrace& trace) {
  TemplateDictionary& bug = Add(page, "BUG");
  Set(bug, "NAME", trace.name);
  Set(bug, "DESCRIPTION", trace.description);
  Set(bug, "CAUGHT", DescribeCaught(trace));
  Set(bug, "VERDICT", VerdictName(HoldsIf(trace.first_wrong_logits >= 0)));
  Set(bug, "PROMPT", trace.prompt);
  if (trace.first_wrong_token < 0) {
    SetText(bug, "BOTH", trace.healthy);
    return;
  }
  SetText(bug, "HEALTHY", trace.healthy);
  SetText(bug, "PLANTED", trace.planted);
}

// A CSS class: one word.
const char* ClassOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "fails";
    case Verdict::kNotJudged:
      break;
  }
  return "unjudged";
}

void AddSection(TemplateDictionary& page, const ProofSection& section) {
  TemplateDictionary& dict = Add(page, "SECTION");
  Set(dict, "TITLE", section.title);
  std::string_view explanation;
  for (const Claim& claim : section.claims) {
    TemplateDictionary& row = Add(dict, "CLAIM");
    if (claim.explanation != explanation) Set(Add(row, "EXPLAINED"), "TEXT", claim.explanation);
    explanation = claim.explanation;
    Set(row, "CLASS", ClassOf(claim.verdict));
    Set(row, "VERDICT", VerdictName(claim.verdict));
    Set(row, "STATEMENT", claim.statement);
    Set(row, "MEASURED", claim.measured);
  }
}

void SetSummary(TemplateDictionary& page, const Proof& proof) {
  constexpr const char* kHeadings[] = {"HOLDS", "FAILS", "NOT_JUDGED"};
  Add(page, kHeadings[static_cast<int>(proof.verdict())]);
  Set(page, "COUNT", DescribeCount(proof.CountClaims()));
  Set(page, "MODEL", proof.model_path);
  Set(page, "MACHINE", DescribeMachine(proof));
  if (!proof.logits.sha256.empty()) Set(Add(page, "LOGITS"), "HASH", DescribeLogits(proof));
  Set(page, "MADE_BY", proof.made_by);
  Set(page, "DATE", proof.date);
  if (!proof.injected.empty()) Set(Add(page, "INJECTED"), "NAME", proof.injected);
}

void AddWaste(TemplateDictionary& page, const WasteFigures& waste) {
  TemplateDictionary& dict = Add(page, "WASTE");
  Set(dict, "NUM_REQUESTS", fmt::format("{}", waste.num_requests));
  Set(dict, "USED_TOKENS", fmt::format("{}", waste.used_tokens));
  Set(dict, "CONTEXT_TOKENS", fmt::format("{}", waste.context_tokens));
  Set(dict, "USED", ByteText(waste.paged.used_bytes));
  Set(dict, "MEMORY", ByteText(waste.memory_bytes));
  for (const Drawing& drawing : kDrawings) {
    AddWasteChart(dict, waste, drawing);
    AddFitChart(dict, waste, drawing);
  }
}

void AddSteps(TemplateDictionary& page, const StepTimes& times) {
  TemplateDictionary& dict = Add(page, "STEPS");
  for (const Drawing& drawing : kDrawings) AddStepChart(dict, times, drawing);
}

}  // namespace

std::string RenderReport(const Proof& proof) {
  TemplateDictionary page("page");
  SetSummary(page, proof);
  if (HasAllWays(proof.step_times)) AddSteps(page, proof.step_times);
  if (proof.waste.memory_bytes > 0) AddWaste(page, proof.waste);
  for (const BugTrace& trace : proof.bugs) AddBug(page, trace);
  for (const ProofSection& section : proof.sections) AddSection(page, section);

  const std::unique_ptr<ctemplate::Template> report(
      ctemplate::Template::StringToTemplate(kReportTemplate, ctemplate::DO_NOT_STRIP));
  std::string html;
  KVICK_CHECK(report != nullptr && report->Expand(&html, &page));
  return html;
}

}  // namespace kvick
