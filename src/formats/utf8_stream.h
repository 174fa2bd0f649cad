#ifndef KVICK_FORMATS_UTF8_STREAM_H_
#define KVICK_FORMATS_UTF8_STREAM_H_

#include <string>
#include <string_view>

namespace kvick {

enum class InvalidUtf8 {
  kKeep,     ///< bytes that are no UTF-8 go through as they are
  kReplace,  ///< each maximal invalid part becomes one U+FFFD
};

// Turns bytes that arrive in arbitrary portions, as those of tokens do, into portions that never
// split a character. The portions joined do not depend on how the bytes were cut.
class Utf8Stream {
 public:
  explicit Utf8Stream(InvalidUtf8 invalid) : invalid_(invalid) {}

  // Everything that is complete by now; at most 3 bytes are held back.
  std::string Push(std::string_view bytes);

  // What was held back: a character that never became whole. The stream is then as new.
  std::string Finish();

 private:
  InvalidUtf8 invalid_;
  std::string pending_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_UTF8_STREAM_H_
