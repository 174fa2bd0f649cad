#include "formats/json.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr size_t kMaxDepth = 64;
// A tokenizer of 256 Ki tokens and 600 Ki merges has about 3 million.
constexpr int64_t kMaxValues = 5'000'000;
constexpr int64_t kMaxFileBytes = 100'000'000;

// Builds the value from the library's parse events. The library's own builder takes the last of two
// equal keys in silence, nests without limit, and tells no place when exceptions are off.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view source) : source_(source) {}

  // REQUIRES: the parser accepted the text.
  nlohmann::json TakeValue() { return std::move(root_); }
  // REQUIRES: the parser refused the text.
  tl::unexpected<Error> TakeError() { return tl::unexpected<Error>(*std::move(error_)); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
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

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return Refuse(fmt::format("not JSON: byte {} and before are not understood", position));
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
    return Refuse(fmt::format("JSON of more than {} values", kMaxValues));
  }

  bool Open(nlohmann::json container) {
    if (!Count()) return false;
    if (open_.size() == kMaxDepth) {
      return Refuse(fmt::format("JSON nested deeper than {}", kMaxDepth));
    }
    open_.push_back(Put(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string_view source_;
  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  // outermost first; an open container's parent never grows
  nlohmann::json* member_ = nullptr;   // of the innermost object: what its last key names
  int64_t num_values_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<nlohmann::json> ParseJson(std::string_view text, std::string_view source) {
  Builder builder(source);
  if (!nlohmann::json::sax_parse(text, &builder)) return builder.TakeError();
  return builder.TakeValue();
}

Result<nlohmann::json> ReadJsonFile(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.size_bytes() > kMaxFileBytes) {
    return Fail(ErrorCode::kUnsupported, "{}: {} bytes of JSON, at most {} is possible", path,
                file.size_bytes(), kMaxFileBytes);
  }
  const auto* text = reinterpret_cast<const char*>(file.data());
  return ParseJson({text, static_cast<size_t>(file.size_bytes())}, path);
}

Result<nlohmann::json> ReadJsonObject(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(nlohmann::json value, ReadJsonFile(path));
  if (!value.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: the text is {}, an object is wanted", path,
                JsonText(value));
  }
  return value;
}

std::string JsonText(const nlohmann::json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace kvick
