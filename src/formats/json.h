#ifndef KVICK_FORMATS_JSON_H_
#define KVICK_FORMATS_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// JSON from outside, as a value that is safe to copy, print and destroy: at most 64 deep, no key
// twice in an object, at most 5 million values. `source` names the text in messages.
// Errors: corrupt: not JSON (RFC 8259: neither NaN nor comments), a key twice, nested too deep.
// Cost    memory in proportion to the text, up to some 20 times its size
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view source);

// Errors: as ParseJson; not_found, io; unsupported: more than 100 MB.
Result<nlohmann::json> ReadJsonFile(const std::string& path);

// Errors: as ReadJsonFile; corrupt: not an object.
Result<nlohmann::json> ReadJsonObject(const std::string& path);

// A value, fit for a message: a number, a quoted string, "an array", ...
std::string JsonText(const nlohmann::json& value);

}  // namespace kvick

#endif  // KVICK_FORMATS_JSON_H_
