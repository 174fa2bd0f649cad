#include "prove/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

namespace kvick {
namespace {

std::string HashOf(std::string_view text) { return Sha256(std::as_bytes(std::span(text))).value(); }

// Source  FIPS 180-2, appendix B
TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(HashOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace kvick
