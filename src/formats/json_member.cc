#include "formats/json_member.h"

#include "base/check.h"
#include "formats/json.h"

namespace kvick {
namespace {

using nlohmann::json;

std::string Path(std::string_view label, std::string_view key) {
  return label.empty() ? std::string(key) : fmt::format("{}.{}", label, key);
}

tl::unexpected<Error> Missing(std::string_view key, std::string_view label) {
  return Fail(ErrorCode::kCorrupt, "{} is missing", Path(label, key));
}

tl::unexpected<Error> WrongType(const json& member, std::string_view key, std::string_view label,
                                std::string_view wanted) {
  return Fail(ErrorCode::kCorrupt, "{} is {}, {} is wanted", Path(label, key), JsonText(member),
              wanted);
}

}  // namespace

const json* FindMember(const json& value, std::string_view key) {
  if (!value.is_object()) return nullptr;
  const auto member = value.find(key);
  return member == value.end() || member->is_null() ? nullptr : &*member;
}

Result<const json*> NeedObject(const json& value, std::string_view key, std::string_view label) {
  const json* member = FindMember(value, key);
  if (!member) return Missing(key, label);
  if (!member->is_object()) return WrongType(*member, key, label, "an object");
  return member;
}

Result<const json*> NeedArray(const json& value, std::string_view key, std::string_view label) {
  KVICK_ASSIGN_OR_RETURN(const json* member, ArrayOrNull(value, key, label));
  if (!member) return Missing(key, label);
  return member;
}

Result<const json*> ArrayOrNull(const json& value, std::string_view key, std::string_view label) {
  const json* member = FindMember(value, key);
  if (member && !member->is_array()) return WrongType(*member, key, label, "an array");
  return member;
}

Result<std::string> NeedString(const json& value, std::string_view key, std::string_view label) {
  if (!FindMember(value, key)) return Missing(key, label);
  return StringOr(value, key, "", label);
}

Result<std::string> StringOr(const json& value, std::string_view key, std::string_view fallback,
                             std::string_view label) {
  const json* member = FindMember(value, key);
  if (!member) return std::string(fallback);
  if (!member->is_string()) return WrongType(*member, key, label, "a string");
  return member->get<std::string>();
}

Result<bool> BoolOr(const json& value, std::string_view key, bool fallback,
                    std::string_view label) {
  const json* member = FindMember(value, key);
  if (!member) return fallback;
  if (!member->is_boolean()) return WrongType(*member, key, label, "true or false");
  return member->get<bool>();
}

}  // namespace kvick
