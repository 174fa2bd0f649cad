#ifndef KVICK_STATUS_H_
#define KVICK_STATUS_H_

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace kvick {

// What kind of failure it was, for programs. The message says the rest, for people.
enum class ErrorCode {
  kInvalidArgument,  ///< the caller asked for something that cannot be: fix the call
  kCorrupt,          ///< a file contradicts itself or its own size
  kUnsupported,      ///< well-formed, but not something that kvick does
  kExhausted,        ///< out of blocks or memory: nothing has changed, try again with less
  kNotFound,         ///< no such file, sequence, tensor or name
  kIo,               ///< the operating system refused a read or a write
  kCancelled,        ///< the caller asked to stop
  kInternal,         ///< an invariant of kvick is broken: a bug worth reporting
};

// "invalid_argument", "corrupt", ...: stable names, fit for logs and JSON.
std::string_view ErrorCodeName(ErrorCode code);

// A failure as a value. `message` is one sentence without a final full stop: what, got, wanted.
struct Error {
  ErrorCode code;
  std::string message;
};

// Either a T or an Error. Nothing in kvick throws, prints, exits or aborts on bad input.
template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

}  // namespace kvick

#endif  // KVICK_STATUS_H_
