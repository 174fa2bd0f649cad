#ifndef KVICK_STATUS_H_
#define KVICK_STATUS_H_

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace kvick {

// The kind of a failure, for programs. The message explains it to people.
enum class ErrorCode {
  kInvalidArgument,  ///< a parameter is out of range or does not fit the others: fix the call
  kCorrupt,          ///< a file contradicts itself or its size, or its weights give no numbers
  kUnsupported,      ///< well-formed, but not supported by kvick
  kExhausted,        ///< out of blocks or memory; nothing has changed, try again with less
  kNotFound,         ///< no such file, sequence, tensor or name
  kIo,               ///< the operating system refused a read or a write
  kCancelled,        ///< the caller asked to stop
  kInternal,         ///< a broken invariant: a bug in kvick
};

// "invalid_argument", "corrupt", ...: stable names, fit for logs and JSON.
std::string_view ErrorCodeName(ErrorCode code);

// A failure as a value. `message` is one sentence without a full stop: "what: expected X, got Y".
struct Error {
  ErrorCode code;
  std::string message;
};

// A T or an Error. kvick does not throw, print, exit, or abort on bad input.
template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

}  // namespace kvick

#endif  // KVICK_STATUS_H_
