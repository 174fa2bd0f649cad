#ifndef KVICK_BASE_CHECK_H_
#define KVICK_BASE_CHECK_H_

#include <fmt/format.h>

#include <string>
#include <utility>

#include "kvick/status.h"

namespace kvick {

// Ends the process with the place and the condition. For programmer errors alone, never for input.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

// Fail(ErrorCode::kCorrupt, "gguf: n_dims: expected at most {}, got {}", 4, n)
template <class... Args>
tl::unexpected<Error> Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{code, fmt::format(std::move(format), std::forward<Args>(args)...)});
}

}  // namespace kvick

#define KVICK_CHECK(condition)                              \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::kvick::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#define KVICK_CONCAT_INNER(a, b) a##b
#define KVICK_CONCAT(a, b) KVICK_CONCAT_INNER(a, b)

// Leaves the function with the error of `expression`, if it has one.
#define KVICK_RETURN_IF_ERROR(expression)                                     \
  do {                                                                        \
    if (auto kvick_status = (expression); !kvick_status)                      \
      return tl::unexpected<::kvick::Error>(std::move(kvick_status).error()); \
  } while (false)

// KVICK_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
#define KVICK_ASSIGN_OR_RETURN(declaration, expression) \
  KVICK_ASSIGN_OR_RETURN_IMPL(KVICK_CONCAT(kvick_result_, __LINE__), declaration, expression)
#define KVICK_ASSIGN_OR_RETURN_IMPL(result, declaration, expression)             \
  auto result = (expression);                                                    \
  if (!result) return tl::unexpected<::kvick::Error>(std::move(result).error()); \
  declaration = *std::move(result)

#endif  // KVICK_BASE_CHECK_H_
