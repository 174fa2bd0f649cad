#include "formats/gguf_parts.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/gguf.h"
#include "formats/gguf_testing.h"

namespace kvick {
namespace {

using testing::GgufSpec;
using testing::Packed;
using testing::TempFolder;
using testing::WriteFile;

constexpr int kNumParts = 3;

// Of a model of three tensors, one in each part; the first has the metadata.
GgufSpec PartSpec(uint16_t index) {
  GgufSpec spec;
  if (index == 0) spec.SetString("general.architecture", "llama");
  spec.Set("split.no", GgufType::kU16, Packed(index));
  spec.Set("split.count", GgufType::kU16, Packed<uint16_t>(kNumParts));
  spec.Set("split.tensors.count", GgufType::kI32, Packed<int32_t>(kNumParts));
  const std::string name(1, static_cast<char>('a' + index));
  spec.tensors.push_back({.name = name, .dims = {2}, .data = std::string(8, name[0])});
  return spec;
}

std::vector<GgufSpec> Parts() { return {PartSpec(0), PartSpec(1), PartSpec(2)}; }

std::string Name(int number) { return GgufPartPath({"model", 1, kNumParts}, number); }

void WriteParts(const TempFolder& folder, const std::vector<GgufSpec>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    WriteFile(folder / Name(static_cast<int>(i) + 1), parts[i].Build());
  }
}

TEST(GgufParts, NamesOfParts) {
  const auto name = ParseGgufPartName("a/m-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->stem, "a/m");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 10);
  EXPECT_EQ(GgufPartPath(*name, 10), "a/m-00010-of-00010.gguf");
  for (const char* other :
       {"m.gguf", "m-00001-of-00002", "m-0001-of-0002.gguf", "m-00001of-00002.gguf", "00002.gguf",
        "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m-0000x-of-00002.gguf", ""}) {
    EXPECT_FALSE(ParseGgufPartName(other).has_value()) << other;
  }
}

TEST(GgufParts, AnyPartOpensAll) {
  TempFolder folder;
  WriteParts(folder, Parts());
  for (int number = 1; number <= kNumParts; ++number) {
    const auto file = GgufFile::Open(folder / Name(number));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->num_parts(), kNumParts);
    EXPECT_EQ(file->source(), folder / Name(1));
    EXPECT_EQ(file->GetString("general.architecture"), "llama");
    ASSERT_EQ(file->tensors().all().size(), 3u);
    for (const char* name : {"a", "b", "c"}) {
      const TensorInfo* tensor = file->tensors().Find(name);
      ASSERT_NE(tensor, nullptr) << name;
      EXPECT_EQ(static_cast<char>(tensor->data[7]), name[0]);
    }
  }
}

TEST(GgufParts, APartOfAnotherNameIsOpenedAlone) {
  TempFolder folder;
  WriteFile(folder / "joined.gguf", PartSpec(0).Build());
  const auto file = GgufFile::Open(folder / "joined.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->num_parts(), 1);
}

TEST(GgufParts, AWholeModelMayHaveTheNameOfAPart) {
  TempFolder folder;
  GgufSpec spec = PartSpec(0);
  spec.Remove("split.count");
  WriteFile(folder / Name(1), spec.Build());
  EXPECT_TRUE(GgufFile::Open(folder / Name(1)).has_value());
}

using PartsDamage = testing::Damage<std::function<void(std::vector<GgufSpec>&)>>;
class GgufPartsDamage : public ::testing::TestWithParam<PartsDamage> {};

TEST_P(GgufPartsDamage, IsRefused) {
  TempFolder folder;
  std::vector<GgufSpec> parts = Parts();
  GetParam().change(parts);
  WriteParts(folder, parts);
  testing::ExpectRefused(testing::ErrorOf(GgufFile::Open(folder / Name(1))), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    GgufParts, GgufPartsDamage,
    ::testing::Values(
        PartsDamage{"MissingFile", [](auto& parts) { parts.pop_back(); },
                    "model-00003-of-00003.gguf: expected a model in 3 files, got no file of this "
                    "name",
                    ErrorCode::kNotFound},
        PartsDamage{"TheSamePartTwice", [](auto& parts) { parts[2] = parts[1]; },
                    "model-00003-of-00003.gguf: split.no: expected 2, got 1"},
        PartsDamage{"PartsInAnotherOrder", [](auto& parts) { std::swap(parts[1], parts[2]); },
                    "model-00002-of-00003.gguf: split.no: expected 1, got 2"},
        PartsDamage{"NoNumber", [](auto& parts) { parts[1].Remove("split.no"); },
                    "split.no is missing"},
        PartsDamage{
            "AnotherCount",
            [](auto& parts) { parts[1].Set("split.count", GgufType::kU16, Packed<uint16_t>(4)); },
            "split.count: expected 3, got 4"},
        PartsDamage{"NoCount", [](auto& parts) { parts[2].Remove("split.count"); },
                    "split.count is missing"},
        PartsDamage{"OfAModelOfMoreTensors",
                    [](auto& parts) {
                      parts[2].Set("split.tensors.count", GgufType::kI32, Packed<int32_t>(9));
                    },
                    "model-00003-of-00003.gguf: split.tensors.count: expected 3, got 9"},
        PartsDamage{"FewerTensorsThanStated", [](auto& parts) { parts[1].tensors.clear(); },
                    "model-00001-of-00003.gguf: split.tensors.count: expected 2, got 3"},
        PartsDamage{"ATensorTwice", [](auto& parts) { parts[2].tensors = parts[1].tensors; },
                    "expected one tensor \"b\", got two"},
        PartsDamage{"DamagedPart", [](auto& parts) { parts[1].magic = "GGML"; },
                    "model-00002-of-00003.gguf: expected a GGUF file"},
        PartsDamage{"CutPart", [](auto& parts) { parts[2].tensors[0].data.resize(4); },
                    "model-00003-of-00003.gguf: tensor \"c\": expected 8 bytes at offset 0"}),
    testing::DamageName());

}  // namespace
}  // namespace kvick
