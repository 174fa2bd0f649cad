#ifndef KVICK_FORMATS_QUOTED_H_
#define KVICK_FORMATS_QUOTED_H_

#include <string>
#include <string_view>

namespace kvick {

// Text from a file, fit for a message: in double quotes, anything but printable ASCII escaped as
// \xNN, cut after 60 bytes. Names in files may be long, binary, or terminal commands.
std::string Quoted(std::string_view text);

}  // namespace kvick

#endif  // KVICK_FORMATS_QUOTED_H_
