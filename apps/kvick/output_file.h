#ifndef KVICK_APPS_KVICK_OUTPUT_FILE_H_
#define KVICK_APPS_KVICK_OUTPUT_FILE_H_

#include <initializer_list>
#include <string>
#include <string_view>

#include "kvick/status.h"

namespace kvick::cli {

// Writes the parts one after the other. A file appears whole or not at all; what is no file, such
// as a pipe, is written to; "-" is stdout. Errors: io.
Status WriteFile(const std::string& path, std::initializer_list<std::string_view> parts);

// Whether `path` looks like one that WriteFile can write: to be asked before work that takes long.
// Errors: io.
Status CheckWritable(const std::string& path);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_OUTPUT_FILE_H_
