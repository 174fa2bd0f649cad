#ifndef KVICK_FORMATS_GGUF_PARTS_H_
#define KVICK_FORMATS_GGUF_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvick {

// The name of one file of a split model: STEM-00001-of-00003.gguf.
struct GgufPartName {
  std::string stem;       ///< with its folder
  int64_t number, count;  ///< number is 1 to count
};

// nullopt for a name of another form, or for a number that is not 1 to the count.
std::optional<GgufPartName> ParseGgufPartName(std::string_view path);

// The path of part `number` of the same model.
std::string GgufPartPath(const GgufPartName& name, int64_t number);

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_PARTS_H_
