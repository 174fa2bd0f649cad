#ifndef KVICK_PROVE_SHA256_H_
#define KVICK_PROVE_SHA256_H_

#include <cstddef>
#include <span>
#include <string>

#include "kvick/status.h"

namespace kvick {

// 64 lowercase hexadecimal digits, as sha256sum writes them.
// Errors: internal: the cryptography library of this system does not provide SHA-256.
Result<std::string> Sha256(std::span<const std::byte> bytes);

}  // namespace kvick

#endif  // KVICK_PROVE_SHA256_H_
