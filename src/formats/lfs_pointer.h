#ifndef KVICK_FORMATS_LFS_POINTER_H_
#define KVICK_FORMATS_LFS_POINTER_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// What a clone of a model's repository without Git LFS holds in place of its large files: a text of
// three lines. `source` names the bytes in the message.
// Errors: corrupt: the bytes begin as such a pointer does.
Status CheckNoLfsPointer(std::span<const std::byte> bytes, std::string_view source);

}  // namespace kvick

#endif  // KVICK_FORMATS_LFS_POINTER_H_
