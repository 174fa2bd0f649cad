// kvick bench compare: two runs side by side.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench.h"
#include "bench_rows.h"
#include "help.h"
#include "input_text.h"
#include "options.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

struct CompareOptions {
  std::string paths[2];
  bool json = false;
  bool strict = false;
};

// A row of a file.
struct FileRow {
  std::string name, variant;
  std::optional<double> us;            // of a pass
  std::optional<double> tokens_per_s;  // where it counts tokens
  std::optional<double> share;
  double spread = 0;
  bool is_trusted = false;
};

struct BenchFile {
  std::string path;
  std::string machine;
  std::vector<FileRow> rows;
};

// A row of both files, or of one.
struct ComparedRow {
  const FileRow* a = nullptr;
  const FileRow* b = nullptr;

  const FileRow& any() const { return a != nullptr ? *a : *b; }
  bool is_of_both() const { return a != nullptr && b != nullptr; }
  // Of B, of that of A.
  std::optional<double> share_ratio() const;
  std::optional<double> speed_ratio() const;
  // As far as both may be off.
  double spread() const { return a->spread + b->spread; }
  // "", "A", "B", "A and B"
  std::string untrusted() const;
};

std::optional<double> Quotient(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

std::optional<double> ComparedRow::share_ratio() const { return Quotient(b->share, a->share); }

std::optional<double> ComparedRow::speed_ratio() const {
  const auto tokens = Quotient(b->tokens_per_s, a->tokens_per_s);
  return tokens ? tokens : Quotient(a->us, b->us);
}

std::string ComparedRow::untrusted() const {
  const bool is_a = a != nullptr && !a->is_trusted, is_b = b != nullptr && !b->is_trusted;
  return is_a && is_b ? "A and B" : is_a ? "A" : is_b ? "B" : "";
}

// A positive number, or nothing.
std::optional<double> Positive(const nlohmann::json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) && number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<std::string> Text(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<FileRow> ParseRow(const nlohmann::json& json) {
  const auto name = Text(json, "name"), variant = Text(json, "case");
  if (!name || !variant) return std::nullopt;
  const auto trusted = json.find("trusted");
  if (trusted == json.end() || !trusted->is_boolean()) return std::nullopt;
  FileRow row{*name, *variant, Positive(json, "quiet_us"), Positive(json, "tokens_per_s"),
              Positive(json, "share")};
  if (!row.us && !row.tokens_per_s) return std::nullopt;
  row.spread = Positive(json, "spread").value_or(0);
  row.is_trusted = trusted->get<bool>();
  return row;
}

// Errors: as ReadText; corrupt: not the output of a bench.
Result<BenchFile> ReadBenchFile(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto fail = [&](const std::string& got) {
    return Fail(ErrorCode::kCorrupt, "{}: expected the output of `kvick bench --json`, got {}",
                ShownName(path), got);
  };
  if (json.is_discarded()) return fail("no JSON");
  if (!json.is_object() || !json.contains("rows") || !json["rows"].is_array()) {
    return fail("JSON without rows");
  }
  BenchFile file{path, "", {}};
  const auto machine = json.find("machine");
  if (machine != json.end()) {
    file.machine = Text(*machine, "processor").value_or("");
    const auto isa = Text(*machine, "isa");
    if (isa) file.machine += ", " + *isa;
  }
  for (const nlohmann::json& row : json["rows"]) {
    const auto parsed = ParseRow(row);
    if (!parsed) return fail(fmt::format("no row of a bench at index {}", file.rows.size()));
    file.rows.push_back(*parsed);
  }
  return file;
}

// In the order of A, then what only B has. Of equal names the first counts.
std::vector<ComparedRow> Match(const BenchFile& a, const BenchFile& b) {
  const auto find = [](const BenchFile& file, const FileRow& wanted) {
    const auto found = std::ranges::find_if(file.rows, [&](const FileRow& row) {
      return row.name == wanted.name && row.variant == wanted.variant;
    });
    return found == file.rows.end() ? nullptr : &*found;
  };
  std::vector<ComparedRow> rows;
  for (const FileRow& row : a.rows) rows.push_back({&row, find(b, row)});
  for (const FileRow& row : b.rows) {
    if (find(a, row) == nullptr) rows.push_back({nullptr, &row});
  }
  return rows;
}

nlohmann::json OrNull(std::optional<double> value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json RowJson(const ComparedRow& row) {
  nlohmann::json json = {{"name", row.any().name}, {"case", row.any().variant}};
  if (!row.is_of_both()) {
    json["only_in"] = row.a != nullptr ? "a" : "b";
    return json;
  }
  json["share"] = {{"a", OrNull(row.a->share)}, {"b", OrNull(row.b->share)}};
  json["share_ratio"] = OrNull(row.share_ratio());
  json["speed_ratio"] = OrNull(row.speed_ratio());
  json["spread"] = row.spread();
  json["trusted"] = row.untrusted().empty();
  return json;
}

void PrintCompared(std::span<const BenchFile> files, std::span<const ComparedRow> rows) {
  for (size_t i = 0; i < files.size(); ++i) {
    fmt::print("{}  {}  {}\n", i == 0 ? "A" : "B", ShownName(files[i].path),
               ShownName(files[i].machine));
  }
  size_t width = 0;
  for (const ComparedRow& row : rows) {
    width = std::max(width, row.any().name.size() + row.any().variant.size() + 2);
  }
  const auto cell = [](std::optional<double> value, double unit, int num_decimals) {
    return value ? fmt::format("{:.{}f}", unit * *value, num_decimals) : "-";
  };
  fmt::print("\n{:{}}  {:>9}  {:>9}  {:>9}  {:>9}  {:>8}\n", "", width, "A share %", "B share %",
             "share B/A", "speed B/A", "spread %");
  for (const ComparedRow& row : rows) {
    const std::string label = ShownName(row.any().name + "  " + row.any().variant);
    if (!row.is_of_both()) {
      fmt::print("{:{}}  only in {}\n", label, width, row.a != nullptr ? "A" : "B");
      continue;
    }
    fmt::print("{:{}}  {:>9}  {:>9}  {:>9}  {:>9}  {:>8.1f}{}\n", label, width,
               cell(row.a->share, 100, 1), cell(row.b->share, 100, 1),
               cell(row.share_ratio(), 1, 3), cell(row.speed_ratio(), 1, 3), 100 * row.spread(),
               row.untrusted().empty() ? "" : "  untrusted: " + row.untrusted());
  }
}

Outcome RunCompare(const CompareOptions& options) {
  std::vector<BenchFile> files;
  for (const std::string& path : options.paths) {
    KVICK_ASSIGN_OR_RETURN(files.emplace_back(), ReadBenchFile(path));
  }
  const std::vector<ComparedRow> rows = Match(files[0], files[1]);
  if (options.json) {
    nlohmann::json json_rows = nlohmann::json::array();
    for (const ComparedRow& row : rows) json_rows.push_back(RowJson(row));
    PrintJson({{"a", files[0].path}, {"b", files[1].path}, {"rows", std::move(json_rows)}});
  } else {
    PrintCompared(files, rows);
  }
  TrustCount count;
  for (const ComparedRow& row : rows) {
    ++count.num_all;
    if (!row.untrusted().empty()) ++count.num_untrusted;
  }
  return options.strict ? count.Strictly() : Status();
}

}  // namespace

Verb AddBenchCompare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  AddExample(app, "kvick bench compare before.json after.json");
  for (const int i : {0, 1}) {
    app.add_option(i == 0 ? "A.json" : "B.json", options->paths[i],
                   "what another bench printed with --json")
        ->type_name("FILE")
        ->check(NotEmpty())
        ->required();
  }
  AddJsonFlag(app, options->json);
  AddStrictFlag(app, options->strict);
  return [options] { return RunCompare(*options); };
}

}  // namespace kvick::cli
