#ifndef KVICK_FORMATS_JSON_H_
#define KVICK_FORMATS_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// Which words pass for numbers.
enum class JsonNumbers {
  kRfc8259,  ///< none: what a request may hold
  kPython,   ///< NaN, Infinity and -Infinity, as Python's json module writes them into files
};

// JSON from outside, as a value that is safe to copy, print and destroy: at most 64 deep, no key
// twice in an object, at most 5 million values. `source` names the text in messages.
//
// Errors  corrupt: not JSON (with line and column, 1-based, in bytes), comments, a key twice,
//         nested too deep
// Cost    memory in proportion to the text, up to some 20 times its size
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view source,
                                 JsonNumbers numbers = JsonNumbers::kRfc8259);

// A file of a model, with the numbers that Python writes.
// Errors: as ParseJson; not_found, io; corrupt: a Git LFS pointer; unsupported: more than 100 MB.
Result<nlohmann::json> ReadJsonFile(const std::string& path);

// Errors: as ReadJsonFile; corrupt: not an object.
Result<nlohmann::json> ReadJsonObject(const std::string& path);

// A value, fit for a message: a number, NaN, a quoted string, "an array", ...
std::string JsonText(const nlohmann::json& value);

}  // namespace kvick

#endif  // KVICK_FORMATS_JSON_H_
