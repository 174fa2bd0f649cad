#include "formats/lfs_pointer.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/files_testing.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "formats/safetensors.h"

namespace kvick {
namespace {

using testing::AsBytes;

constexpr std::string_view kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n";
constexpr const char* kMessage =
    "x: expected the file itself, got a Git LFS pointer to it: run `git lfs pull`";

TEST(LfsPointer, IsToldFromOtherBytes) {
  EXPECT_EQ(CheckNoLfsPointer(AsBytes(kPointer), "x").error().message, kMessage);
  for (const std::string_view text : {"", "version", "version 1\n", "GGUF", "{}"}) {
    EXPECT_TRUE(CheckNoLfsPointer(AsBytes(text), "x").has_value()) << text;
  }
}

TEST(LfsPointer, IsNamedByEveryFormat) {
  EXPECT_EQ(GgufFile::Parse(AsBytes(kPointer), "x").error().message, kMessage);
  EXPECT_EQ(SafetensorsFile::Parse(AsBytes(kPointer), "x").error().message, kMessage);
}

}  // namespace
}  // namespace kvick
