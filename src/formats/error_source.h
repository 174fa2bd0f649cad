#ifndef KVICK_FORMATS_ERROR_SOURCE_H_
#define KVICK_FORMATS_ERROR_SOURCE_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// For Result::map_error: "SOURCE: " before the message of what was read without knowing its file.
// `source` must outlive the call.
inline auto WithSource(std::string_view source) {
  return [source](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", source, error.message)};
  };
}

}  // namespace kvick

#endif  // KVICK_FORMATS_ERROR_SOURCE_H_
