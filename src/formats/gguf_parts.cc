#include "formats/gguf_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"

namespace kvick {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr size_t kNumDigits = 5;

// Takes `suffix` off the end of `text`, if that is there.
bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::optional<int64_t> TakeNumber(std::string_view& text) {
  if (text.size() < kNumDigits) return std::nullopt;
  int64_t number = 0;
  for (const char c : text.substr(text.size() - kNumDigits)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  text.remove_suffix(kNumDigits);
  return number;
}

Status CheckKey(const GgufFile& part, std::string_view key, int64_t expected) {
  KVICK_ASSIGN_OR_RETURN(const int64_t value, part.GetInt(key));
  if (value == expected) return {};
  return Fail(ErrorCode::kCorrupt, "{}: {}: expected {}, got {}", part.source(), key, expected,
              value);
}

}  // namespace

std::optional<GgufPartName> ParseGgufPartName(std::string_view path) {
  if (!TakeSuffix(path, kExtension)) return std::nullopt;
  const std::optional<int64_t> count = TakeNumber(path);
  if (!count || !TakeSuffix(path, kOf)) return std::nullopt;
  const std::optional<int64_t> number = TakeNumber(path);
  if (!number || !TakeSuffix(path, "-") || *number < 1 || *number > *count) return std::nullopt;
  return GgufPartName{std::string(path), *number, *count};
}

std::string GgufPartPath(const GgufPartName& name, int64_t number) {
  return fmt::format("{}-{:05}{}{:05}{}", name.stem, number, kOf, name.count, kExtension);
}

Result<GgufFile> GgufFile::OpenPart(const std::string& path, int64_t num_parts) {
  Result<GgufFile> part = OpenSingle(path);
  if (part || part.error().code != ErrorCode::kNotFound) return part;
  return Fail(ErrorCode::kNotFound, "{}: expected a model in {} files, got no file of this name",
              path, num_parts);
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(GgufFile file, OpenSingle(path));
  KVICK_ASSIGN_OR_RETURN(const auto count, file.FindInt(kSplitCountKey));
  const std::optional<GgufPartName> name = ParseGgufPartName(path);
  if (count.value_or(1) <= 1 || !name || name->count != *count) return file;
  std::vector<GgufFile> parts;
  for (int64_t number = 1; number <= name->count; ++number) {
    if (number == name->number) {
      parts.push_back(std::move(file));
      continue;
    }
    KVICK_ASSIGN_OR_RETURN(GgufFile part, OpenPart(GgufPartPath(*name, number), name->count));
    parts.push_back(std::move(part));
  }
  return Join(std::move(parts));
}

Result<GgufFile> GgufFile::Join(std::vector<GgufFile> parts) {
  std::vector<TensorInfo> tensors;
  for (const GgufFile& part : parts) {
    tensors.insert(tensors.end(), part.tensors().all().begin(), part.tensors().all().end());
  }
  const auto num_parts = static_cast<int64_t>(parts.size());
  for (int64_t i = 0; i < num_parts; ++i) {
    KVICK_RETURN_IF_ERROR(CheckKey(parts[i], "split.no", i));
    KVICK_RETURN_IF_ERROR(CheckKey(parts[i], kSplitCountKey, num_parts));
    KVICK_RETURN_IF_ERROR(
        CheckKey(parts[i], "split.tensors.count", static_cast<int64_t>(tensors.size())));
  }
  GgufFile whole = std::move(parts.front());
  KVICK_ASSIGN_OR_RETURN(whole.tensors_, TensorTable::Create(whole.source_, std::move(tensors)));
  parts.erase(parts.begin());
  whole.other_parts_ = std::move(parts);
  return whole;
}

}  // namespace kvick
