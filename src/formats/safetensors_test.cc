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
  EXPECT_EQ(z.dtype, DType::kBF16);
  EXPECT_EQ(z.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(z.num_bytes, 12);
  EXPECT_EQ(*reinterpret_cast<const char*>(z.data), 'z');
  EXPECT_TRUE(file->tensors().Find("b")->shape.empty());
  EXPECT_EQ(file->tensors().Find("a")->dtype, std::nullopt);
  EXPECT_EQ(file->tensors().Find("a")->type_name, "I64");
}

TEST(Safetensors, ReadsMetadataAndAPaddedHeader) {
  const std::string bytes = SafetensorsBytes(R"({"__metadata__":{"format":"pt"}}   )", "");
  const auto file = SafetensorsFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

using Damage = testing::Damage<std::string>;  // the header

class SafetensorsDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(SafetensorsDamage, IsOneClearSentence) {
  const Error error = ParseError(SafetensorsBytes(GetParam().change, "12345678"));
  EXPECT_EQ(error.message.find("safetensors: "), 0u) << error.message;
  testing::ExpectRefused(error, GetParam());
}

const Damage kDamages[] = {
    {"NotJson", R"({"a":)", "not JSON"},
    {"NotAnObject", "[]", "the header is an array, an object is wanted"},
    {"NestingBomb", std::string(100000, '['), "JSON nested deeper than 64"},
    {"EntryNotAnObject", R"({"a":7})", "tensor \"a\" is 7, an object is wanted"},
    {"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor \"a\".dtype is missing"},
    {"UnknownDtype", R"({"a":{"dtype":"F7","shape":[2],"data_offsets":[0,8]}})",
     "tensor \"a\".dtype is \"F7\", which is not known", ErrorCode::kUnsupported},
    {"DtypeAsNumber", R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})",
     "tensor \"a\".dtype is 7, a string is wanted"},
    {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "tensor \"a\".shape is missing"},
    {"DimensionOf0", R"({"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,8]}})",
     "an element of tensor \"a\".shape is 0, 1 to 9223372036854775807 is possible"},
    {"NegativeDimension", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
     "shape is -2, 1 to 9223372036854775807 is possible"},
    {"FractionalDimension", R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
     "shape is 2.0, an integer is wanted"},
    {"DimensionOf2To63",
     R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}})",
     "shape is 9223372036854775808, 1 to 9223372036854775807 is possible"},
    {"ProductThatOverflows",
     R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
     "the shape [4294967296, 4294967296] of F32 is more than 2^63 bits"},
    {"PartialBytes", R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})",
     "the shape [3] of F4 is not a whole number of bytes"},
    {"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", "tensor \"a\".data_offsets is missing"},
    {"ThreeOffsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
     "data_offsets is [0, 8, 8], [begin, end) is wanted"},
    {"EndBeforeBegin", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
     "data_offsets is [8, 0], [begin, end) is wanted"},
    {"DataPastTheEnd", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
     "tensor \"a\" ends at byte 12, the file holds 8 bytes of tensors"},
    {"SizesThatDisagree", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",
     "tensor \"a\" has 8 bytes, 4 is wanted for F32 [1]"},
    {"TensorsThatOverlap",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
     "tensors \"a\" and \"b\" overlap"},
    {"TwoTensorsOfOneName",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "an object has the key \"a\" twice"},
    {"MetadataOfNumbers", R"({"__metadata__":{"a":1}})", "an object of strings is wanted"},
};

INSTANTIATE_TEST_SUITE_P(All, SafetensorsDamage, ::testing::ValuesIn(kDamages),
                         testing::DamageName());

TEST(Safetensors, RefusesAHeaderLongerThanTheFileOrTheLimit) {
  std::string bytes = testing::Packed<uint64_t>(1000) + "{}";
  EXPECT_EQ(ParseError(bytes).message,
            "safetensors: the file ends inside the header: 1000 bytes wanted at offset 8, 2 are "
            "left");
  bytes = testing::Packed<uint64_t>(uint64_t{1} << 63) + "{}";
  EXPECT_EQ(ParseError(bytes).message,
            "safetensors: the header's length is 9223372036854775808 bytes, at most 100000000 is "
            "possible");
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
