#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/safetensors_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::SafetensorsBytes;

Error ParseError(std::string_view bytes) {
  return testing::ErrorOf(SafetensorsFile::Parse(AsBytes(bytes)));
}

TEST(Safetensors, ReadsTensorsInFileOrder) {
  const std::string bytes = SafetensorsBytes({{"z", "BF16", {2, 3}, std::string(12, 'z')},
                                              {"b", "F32", {}, "1234"},
                                              {"a", "I64", {1}, "12345678"}});
  const auto file = SafetensorsFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->tensors().all().size(), 3u);
  const TensorInfo& z = file->tensors().all()[0];
  EXPECT_EQ(z.name, "z");
  EXPECT_EQ(z.format, &FormatOf(WeightType::kBF16));
  EXPECT_EQ(z.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(z.num_bytes, 12);
  EXPECT_EQ(*reinterpret_cast<const char*>(z.data), 'z');
  EXPECT_TRUE(file->tensors().Find("b")->shape.empty());
  EXPECT_EQ(file->tensors().Find("a")->format, nullptr);
  EXPECT_EQ(file->tensors().Find("a")->type_name, "I64");
}

TEST(Safetensors, ReadsMetadataAndAPaddedHeader) {
  const std::string bytes = SafetensorsBytes(R"({"__metadata__":{"format":"pt"}}   )", "");
  const auto file = SafetensorsFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(Safetensors, ReadsTensorsWithoutElementsWhereverTheyLie) {
  const std::string bytes = SafetensorsBytes({{"before", "F32", {0}, ""},
                                              {"a", "F32", {1}, "1234"},
                                              {"between", "BF16", {3, 0, int64_t{1} << 62}, ""},
                                              {"b", "F32", {1}, "5678"},
                                              {"behind", "F32", {0, 2}, ""}});
  const auto file = SafetensorsFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->tensors().all().size(), 5u);
  EXPECT_EQ(*reinterpret_cast<const char*>(file->tensors().Find("b")->data), '5');
  EXPECT_EQ(file->tensors().Find("between")->num_bytes, 0);
  EXPECT_EQ(file->tensors().Find("behind")->shape, (std::vector<int64_t>{0, 2}));
}

TEST(Safetensors, TakesMetadataOfNullForNone) {
  const std::string bytes = SafetensorsBytes(R"({"__metadata__":null})", "");
  EXPECT_TRUE(SafetensorsFile::Parse(AsBytes(bytes))->metadata().empty());
}

using Damage = testing::Damage<std::string>;  // the header

class SafetensorsDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(SafetensorsDamage, IsOneClearSentence) {
  const Error error = ParseError(SafetensorsBytes(GetParam().change, "12345678"));
  EXPECT_EQ(error.message.find("safetensors: "), 0u) << error.message;
  testing::ExpectRefused(error, GetParam());
}

const Damage kDamages[] = {
    {"NotJson", R"({"a":)", "expected JSON, got the end of the text"},
    {"NotAnObject", "[]", "the header: expected an object, got an array"},
    {"NestingBomb", std::string(100000, '['), "expected JSON nested at most 64 deep, got more"},
    {"EntryNotAnObject", R"({"a":7})", "tensor \"a\": expected an object, got 7"},
    {"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor \"a\".dtype is missing"},
    {"UnknownDtype", R"({"a":{"dtype":"F7","shape":[2],"data_offsets":[0,8]}})",
     "tensor \"a\".dtype: expected a known type, got \"F7\"", ErrorCode::kUnsupported},
    {"DtypeAsNumber", R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})",
     "tensor \"a\".dtype: expected a string, got 7"},
    {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "tensor \"a\".shape is missing"},
    {"BytesOfAnEmptyTensor", R"({"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,8]}})",
     "tensor \"a\": expected 0 bytes for F32 [2, 0], got 8"},
    {"NegativeDimension", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
     "shape: expected 0 to 9223372036854775807, got -2"},
    {"FractionalDimension", R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
     "shape: expected an integer, got 2.0"},
    {"DimensionOf2To63",
     R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}})",
     "shape: expected 0 to 9223372036854775807, got 9223372036854775808"},
    {"ProductThatOverflows",
     R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
     "expected less than 2^63 bits, got F32 [4294967296, 4294967296]"},
    {"PartialBytes", R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})",
     "expected a whole number of bytes, got F4 [3]"},
    {"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", "tensor \"a\".data_offsets is missing"},
    {"EndlessShape",
     R"({"a":{"dtype":"F32","shape":[1,2,3,4,5,6,7,8,9,10,11],"data_offsets":[0,8]}})",
     "for F32 [1, 2, 3, 4, 5, 6, 7, 8, ... 11 sizes], got 8"},
    {"ThreeOffsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
     "data_offsets: expected [begin, end), got [0, 8, 8]"},
    {"EndBeforeBegin", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
     "data_offsets: expected [begin, end), got [8, 0]"},
    {"DataPastTheEnd", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
     "tensor \"a\": expected its end within the 8 bytes of tensors, got 12"},
    {"SizesThatDisagree", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",
     "tensor \"a\": expected 4 bytes for F32 [1], got 8"},
    {"TensorsThatOverlap",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
     "tensors \"a\" and \"b\" overlap"},
    {"TwoTensorsOfOneName",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "an object has the key \"a\" twice"},
    {"MetadataOfNumbers", R"({"__metadata__":{"a":1}})",
     "__metadata__.a: expected a string, got 1"},
};

INSTANTIATE_TEST_SUITE_P(All, SafetensorsDamage, ::testing::ValuesIn(kDamages),
                         testing::DamageName());

TEST(Safetensors, RefusesAHeaderLongerThanTheFileOrTheLimit) {
  std::string bytes = testing::Packed<uint64_t>(1000) + "{}";
  EXPECT_EQ(ParseError(bytes).message,
            "safetensors: the header at offset 8: expected 1000 bytes, got the 2 that are left");
  bytes = testing::Packed<uint64_t>(uint64_t{1} << 63) + "{}";
  EXPECT_EQ(ParseError(bytes).message,
            "safetensors: expected a header of at most 100000000 bytes, got 9223372036854775808");
}

TEST(Safetensors, RefusesAFileCutAtAnyByte) {
  const std::string bytes = SafetensorsBytes({{"a", "F16", {2, 2}, "12345678"}});
  ASSERT_TRUE(SafetensorsFile::Parse(AsBytes(bytes)).has_value());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_EQ(ParseError(cut).code, ErrorCode::kCorrupt) << "cut at " << size;
  }
}

}  // namespace
}  // namespace kvick
