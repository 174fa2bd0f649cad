#ifndef KVICK_FORMATS_JSON_MEMBERS_H_
#define KVICK_FORMATS_JSON_MEMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/range.h"
#include "kvick/status.h"

namespace kvick {

// The members of a JSON value of unknown shape, each of the type that is asked for. A member that
// is null counts as missing, and a value that is no object has no members. An ...Or gives the
// fallback for a missing member.
//
// Errors  corrupt: missing, of another type, out of range, or a number that is not finite
class JsonMembers {
 public:
  // `label` names the value in messages ("model"; empty for the document), so that they read
  // "model.vocab: expected an object, got an array". `value` must outlive this.
  explicit JsonMembers(const nlohmann::json& value, std::string label = "");

  // "model.vocab". A key that is no word, as one that comes from a file, is quoted.
  std::string Label(std::string_view key) const;

  // Whether there is a member of that name, be it null.
  bool Has(std::string_view key) const;
  // nullptr where it is missing.
  const nlohmann::json* Find(std::string_view key) const;

  Result<const nlohmann::json*> Object(std::string_view key) const;
  Result<const nlohmann::json*> Array(std::string_view key) const;
  Result<const nlohmann::json*> ArrayOrNull(std::string_view key) const;

  Result<std::string> String(std::string_view key) const;
  Result<std::string> StringOr(std::string_view key, std::string_view fallback) const;
  Result<bool> BoolOr(std::string_view key, bool fallback) const;
  Result<int64_t> Int(std::string_view key, IntRange range) const;
  Result<int64_t> IntOr(std::string_view key, IntRange range, int64_t fallback) const;
  Result<double> Float(std::string_view key, FloatRange range) const;
  Result<double> FloatOr(std::string_view key, FloatRange range, double fallback) const;

 private:
  Result<const nlohmann::json*> Need(std::string_view key) const;

  const nlohmann::json& value_;
  std::string label_;
};

// The same for a value that is no member, as those of an array.
Result<int64_t> JsonInt(const nlohmann::json& value, std::string_view label, IntRange range);

}  // namespace kvick

#endif  // KVICK_FORMATS_JSON_MEMBERS_H_
