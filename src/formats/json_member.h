#ifndef KVICK_FORMATS_JSON_MEMBER_H_
#define KVICK_FORMATS_JSON_MEMBER_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// Members of a JSON value of unknown shape. `label` names the value in messages ("model"; empty for
// the document), so that they read "model.vocab is an array, an object is wanted". A member that is
// null counts as missing, and a value that is no object has no members.
//
// Errors    corrupt: missing where it is needed, or of another type

// nullptr where it is missing.
const nlohmann::json* FindMember(const nlohmann::json& value, std::string_view key);

Result<const nlohmann::json*> NeedObject(const nlohmann::json& value, std::string_view key,
                                         std::string_view label);
Result<const nlohmann::json*> NeedArray(const nlohmann::json& value, std::string_view key,
                                        std::string_view label);
Result<const nlohmann::json*> ArrayOrNull(const nlohmann::json& value, std::string_view key,
                                          std::string_view label);
Result<std::string> NeedString(const nlohmann::json& value, std::string_view key,
                               std::string_view label);
Result<std::string> StringOr(const nlohmann::json& value, std::string_view key,
                             std::string_view fallback, std::string_view label);
Result<bool> BoolOr(const nlohmann::json& value, std::string_view key, bool fallback,
                    std::string_view label);

}  // namespace kvick

#endif  // KVICK_FORMATS_JSON_MEMBER_H_
