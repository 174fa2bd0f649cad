#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace kvick {
namespace {

TEST(MappedRegion, IsAlignedZeroedAndMovesWithoutMoving) {
  auto region = MappedRegion::Create(5 << 20, Backing::kUpFront);
  ASSERT_TRUE(region.has_value());
  std::byte* data = region->data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kHugePageBytes, 0u);
  EXPECT_EQ(region->size_bytes(), 6 << 20);
  for (int64_t i = 0; i < region->size_bytes(); i += 4096) ASSERT_EQ(data[i], std::byte{0});
  MappedRegion moved = *std::move(region);
  EXPECT_EQ(moved.data(), data);
}

TEST(MappedRegion, SaysHowMuchThereIs) {
  const int64_t available = AvailableMemoryBytes();
  auto region = MappedRegion::Create(available + (int64_t{1} << 40), Backing::kUpFront);
  ASSERT_FALSE(region.has_value());
  EXPECT_EQ(region.error().code, ErrorCode::kExhausted);
  EXPECT_NE(region.error().message.find("are available"), std::string::npos);
}

TEST(MappedFile, RefusesWhatIsNotAFile) {
  EXPECT_EQ(MappedFile::Open("/no/such/file").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::Open("/").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open("/dev/null").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvick
