#ifndef KVICK_FORMATS_QUOTED_H_
#define KVICK_FORMATS_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kvick {

// Text from a file, fit for a message: in double quotes, readable where it is UTF-8, cut after
// `max_bytes`. Control characters, those that change the direction of writing, and bytes that are
// no UTF-8 are escaped as \xNN: names in files may be long, binary, or terminal commands.
std::string Quoted(std::string_view text, size_t max_bytes = 60);

// Whether a terminal shows all of `text` as it is: nothing in it would be escaped as \xNN.
bool IsPrintable(std::string_view text);

}  // namespace kvick

#endif  // KVICK_FORMATS_QUOTED_H_
