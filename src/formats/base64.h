#ifndef KVICK_FORMATS_BASE64_H_
#define KVICK_FORMATS_BASE64_H_

#include <optional>
#include <string>
#include <string_view>

namespace kvick {

// Base64 as of RFC 4648, section 4, with padding.
std::string EncodeBase64(std::string_view bytes);

// nullopt for anything else than what EncodeBase64 gives.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace kvick

#endif  // KVICK_FORMATS_BASE64_H_
