#include "formats/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory.h"
#include "formats/lfs_pointer.h"
#include "formats/python_json_text.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr size_t kMaxDepth = 64;
// A tokenizer of 256 Ki tokens and 600 Ki merges has about 3 million.
constexpr int64_t kMaxValues = 5'000'000;
constexpr int64_t kMaxFileBytes = 100'000'000;

// "line 3, column 14" of the byte before `position`.
std::string PlaceOf(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position - 1, text.size()));
  const auto num_lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
  return fmt::format("line {}, column {}", num_lines + 1, before.size() - line_begin + 1);
}

// The word that ends with the byte before `position`, or is around it.
std::string TokenAt(std::string_view text, size_t position) {
  if (position > text.size()) return "the end of the text";
  const auto is_word = [text](size_t i) {
    return std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-';
  };
  size_t begin = position - 1, end = position;
  while (begin > 0 && is_word(begin - 1)) --begin;
  while (end < text.size() && is_word(end - 1) && is_word(end)) ++end;
  return Quoted(text.substr(begin, end - begin));
}

// Builds the value from the library's parse events. The library's own builder takes the last of two
// equal keys in silence, nests without limit, and tells no place when exceptions are off.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `words` is the text, where it may hold words for numbers, else nullptr. All must outlive this.
  Builder(std::string_view text, std::string_view source, PythonJsonText* words)
      : text_(text), source_(source), words_(words) {}

  // REQUIRES: the parser accepted the text.
  nlohmann::json TakeValue() { return std::move(root_); }
  // REQUIRES: the parser refused the text.
  tl::unexpected<Error> TakeError() { return tl::unexpected<Error>(*std::move(error_)); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    const auto word = words_ == nullptr ? std::nullopt : words_->TakeWord();
    return Add(word.value_or(value));
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in text
  bool start_object(size_t) override { return Open(nlohmann::json::object()); }
  bool start_array(size_t) override { return Open(nlohmann::json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    const auto [place, is_new] = open_.back()->emplace(name, nullptr);
    if (!is_new) return Refuse(fmt::format("an object has the key {} twice", Quoted(name)));
    member_ = &*place;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& exception) override {
    constexpr int kNumberOverflow = 406;  // documented
    return Refuse(
        fmt::format("{}: expected {}, got {}", PlaceOf(text_, position),
                    exception.id == kNumberOverflow ? "a number that fits a double" : "JSON",
                    TokenAt(text_, position)));
  }

 private:
  bool Refuse(std::string reason) {
    error_ = Error{ErrorCode::kCorrupt, fmt::format("{}: {}", source_, reason)};
    return false;
  }

  nlohmann::json* Put(nlohmann::json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    *member_ = std::move(value);
    return member_;
  }

  bool Add(nlohmann::json value) {
    if (!Count()) return false;
    Put(std::move(value));
    return true;
  }

  bool Count() {
    if (++num_values_ <= kMaxValues) return true;
    return Refuse(fmt::format("expected at most {} values in JSON, got more", kMaxValues));
  }

  bool Open(nlohmann::json container) {
    if (!Count()) return false;
    if (open_.size() == kMaxDepth) {
      return Refuse(fmt::format("expected JSON nested at most {} deep, got more", kMaxDepth));
    }
    open_.push_back(Put(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view source_;
  PythonJsonText* words_;
  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  // outermost first; an open container's parent never grows
  nlohmann::json* member_ = nullptr;   // of the innermost object: what its last key names
  int64_t num_values_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<nlohmann::json> ParseJson(std::string_view text, std::string_view source,
                                 JsonNumbers numbers) {
  if (numbers == JsonNumbers::kRfc8259) {
    Builder builder(text, source, nullptr);
    if (!nlohmann::json::sax_parse(text, &builder)) return builder.TakeError();
    return builder.TakeValue();
  }
  PythonJsonText words(text);
  Builder builder(text, source, &words);
  if (!nlohmann::json::sax_parse(words.begin(), words.end(), &builder)) return builder.TakeError();
  return builder.TakeValue();
}

Result<nlohmann::json> ReadJsonFile(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::span bytes(file.data(), static_cast<size_t>(file.size_bytes()));
  KVICK_RETURN_IF_ERROR(CheckNoLfsPointer(bytes, path));
  if (file.size_bytes() > kMaxFileBytes) {
    return Fail(ErrorCode::kUnsupported, "{}: expected at most {} bytes of JSON, got {}", path,
                kMaxFileBytes, file.size_bytes());
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return ParseJson(text, path, JsonNumbers::kPython);
}

Result<nlohmann::json> ReadJsonObject(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(nlohmann::json value, ReadJsonFile(path));
  if (!value.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an object, got {}", path, JsonText(value));
  }
  return value;
}

std::string JsonText(const nlohmann::json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  }
  return value.dump();
}

}  // namespace kvick
