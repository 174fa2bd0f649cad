#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "base/mapped_array.h"

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
  EXPECT_NE(region.error().message.find("available bytes"), std::string::npos);
}

TEST(MappedArray, CostsWhatIsWritten) {
  auto array = MappedArray<int64_t>::Create("table", int64_t{1} << 36, Backing::kOnDemand);
  ASSERT_TRUE(array.has_value()) << array.error().message;
  (*array)[(int64_t{1} << 36) - 1] = 7;
  EXPECT_EQ((*array)[(int64_t{1} << 36) - 1], 7);
  EXPECT_EQ((*array)[12345], 0);
}

TEST(MappedArray, MoreThanThereIsIsAnError) {
  for (const int64_t num_elements : {int64_t{1} << 50, std::numeric_limits<int64_t>::max()}) {
    const auto array = MappedArray<int64_t>::Create("table", num_elements, Backing::kUpFront);
    ASSERT_FALSE(array.has_value());
    EXPECT_EQ(array.error().code, ErrorCode::kExhausted);
    EXPECT_TRUE(array.error().message.starts_with("table: ")) << array.error().message;
  }
}

TEST(MappedFile, RefusesWhatIsNotAFile) {
  EXPECT_EQ(MappedFile::Open("/no/such/file").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::Open("/").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open("/dev/null").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvick
