#include "prove/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace kvick {

Result<std::string> Sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int num_bytes = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &num_bytes, EVP_sha256(), nullptr) !=
      1) {
    return Fail(ErrorCode::kInternal, "SHA-256: the cryptography library does not provide it");
  }
  std::string hex;
  for (unsigned int i = 0; i < num_bytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace kvick
