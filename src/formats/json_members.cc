#include "formats/json_members.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using nlohmann::json;

tl::unexpected<Error> WrongType(const json& value, std::string_view label,
                                std::string_view expected) {
  return Fail(ErrorCode::kCorrupt, "{}: expected {}, got {}", label, expected, JsonText(value));
}

}  // namespace

JsonMembers::JsonMembers(const json& value, std::string label)
    : value_(value), label_(std::move(label)) {}

std::string JsonMembers::Label(std::string_view key) const {
  const bool is_word =
      std::ranges::all_of(key, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  const std::string name = is_word ? std::string(key) : Quoted(key);
  return label_.empty() ? name : fmt::format("{}.{}", label_, name);
}

bool JsonMembers::Has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

const json* JsonMembers::Find(std::string_view key) const {
  if (!value_.is_object()) return nullptr;
  const auto member = value_.find(key);
  return member == value_.end() || member->is_null() ? nullptr : &*member;
}

Result<const json*> JsonMembers::Need(std::string_view key) const {
  const json* member = Find(key);
  if (member == nullptr) return Fail(ErrorCode::kCorrupt, "{} is missing", Label(key));
  return member;
}

Result<const json*> JsonMembers::Object(std::string_view key) const {
  KVICK_ASSIGN_OR_RETURN(const json* member, Need(key));
  if (!member->is_object()) return WrongType(*member, Label(key), "an object");
  return member;
}

Result<const json*> JsonMembers::Array(std::string_view key) const {
  KVICK_RETURN_IF_ERROR(Need(key));
  return ArrayOrNull(key);
}

Result<const json*> JsonMembers::ArrayOrNull(std::string_view key) const {
  const json* member = Find(key);
  if (member != nullptr && !member->is_array()) return WrongType(*member, Label(key), "an array");
  return member;
}

Result<std::string> JsonMembers::String(std::string_view key) const {
  KVICK_ASSIGN_OR_RETURN(const json* member, Need(key));
  if (!member->is_string()) return WrongType(*member, Label(key), "a string");
  return member->get<std::string>();
}

Result<std::string> JsonMembers::StringOr(std::string_view key, std::string_view fallback) const {
  if (Find(key) == nullptr) return std::string(fallback);
  return String(key);
}

Result<bool> JsonMembers::BoolOr(std::string_view key, bool fallback) const {
  const json* member = Find(key);
  if (member == nullptr) return fallback;
  if (!member->is_boolean()) return WrongType(*member, Label(key), "true or false");
  return member->get<bool>();
}

Result<int64_t> JsonMembers::Int(std::string_view key, IntRange range) const {
  KVICK_ASSIGN_OR_RETURN(const json* member, Need(key));
  return JsonInt(*member, Label(key), range);
}

Result<int64_t> JsonMembers::IntOr(std::string_view key, IntRange range, int64_t fallback) const {
  if (Find(key) == nullptr) return fallback;
  return Int(key, range);
}

Result<double> JsonMembers::Float(std::string_view key, FloatRange range) const {
  KVICK_ASSIGN_OR_RETURN(const json* member, Need(key));
  if (!member->is_number()) return WrongType(*member, Label(key), "a number");
  const auto value = member->get<double>();
  if (!std::isfinite(value)) return WrongType(*member, Label(key), "a finite number");
  KVICK_RETURN_IF_ERROR(CheckRange(Label(key), value, range));
  return value;
}

Result<double> JsonMembers::FloatOr(std::string_view key, FloatRange range, double fallback) const {
  if (Find(key) == nullptr) return fallback;
  return Float(key, range);
}

Result<int64_t> JsonInt(const json& value, std::string_view label, IntRange range) {
  if (!value.is_number_integer()) return WrongType(value, label, "an integer");
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {} to {}, got {}", label, range.min, range.max,
                JsonText(value));
  }
  const auto number = value.get<int64_t>();
  KVICK_RETURN_IF_ERROR(CheckRange(label, number, range));
  return number;
}

}  // namespace kvick
