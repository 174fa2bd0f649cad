#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/gguf_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::GgufSpec;
using testing::Packed;
using testing::PackedArray;
using testing::PackedString;

// One entry, one [2, 3] tensor of f32.
GgufSpec SmallSpec() {
  GgufSpec spec;
  spec.SetString("general.architecture", "llama");
  spec.tensors.push_back({.name = "a", .dims = {3, 2}, .data = std::string(24, 'x')});
  return spec;
}

Error ParseError(std::string_view bytes) {
  return testing::ErrorOf(GgufFile::Parse(AsBytes(bytes)));
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  GgufSpec spec;
  spec.Set("u8", GgufType::kU8, Packed<uint8_t>(200));
  spec.Set("i8", GgufType::kI8, Packed<int8_t>(-100));
  spec.Set("u16", GgufType::kU16, Packed<uint16_t>(60000));
  spec.Set("i16", GgufType::kI16, Packed<int16_t>(-30000));
  spec.Set("u32", GgufType::kU32, Packed<uint32_t>(4000000000));
  spec.Set("i32", GgufType::kI32, Packed<int32_t>(-2000000000));
  spec.Set("u64", GgufType::kU64, Packed<uint64_t>(1));
  spec.Set("i64", GgufType::kI64, Packed(std::numeric_limits<int64_t>::min()));
  spec.Set("f32", GgufType::kF32, Packed(0.5f));
  spec.Set("f64", GgufType::kF64, Packed(1e300));
  spec.Set("bool", GgufType::kBool, Packed<uint8_t>(1));
  spec.Set("string", GgufType::kString, PackedString(std::string_view("\xff\0b", 3)));
  spec.Set("ints", GgufType::kArray,
           PackedArray(GgufType::kI16, 2, Packed<int16_t>(-1) + Packed<int16_t>(7)));
  const std::string bytes = spec.Build();
  const auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->GetInt("u8"), 200);
  EXPECT_EQ(file->GetInt("i8"), -100);
  EXPECT_EQ(file->GetInt("u16"), 60000);
  EXPECT_EQ(file->GetInt("i16"), -30000);
  EXPECT_EQ(file->GetInt("u32"), 4000000000);
  EXPECT_EQ(file->GetInt("i32"), -2000000000);
  EXPECT_EQ(file->GetInt("u64"), 1);
  EXPECT_EQ(file->GetInt("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(file->GetFloat("f32"), 0.5);
  EXPECT_EQ(file->GetFloat("f64"), 1e300);
  EXPECT_EQ(file->FindBool("bool"), true);
  EXPECT_EQ(file->GetString("string"), std::string_view("\xff\0b", 3));
  EXPECT_EQ(file->FindIntArray("ints"), (std::vector<int64_t>{-1, 7}));
  EXPECT_FALSE(file->FindInt("absent")->has_value());
  ASSERT_EQ(file->metadata().size(), 13u);
  EXPECT_EQ(file->metadata()[3].key, "i16");
  EXPECT_EQ(GgufValueText(file->metadata()[11].value, 4), "\"\\xff\\x00b\"");
  EXPECT_EQ(GgufValueText(file->metadata()[12].value, 1), "[-1, ... 2 in all]");
}

TEST(Gguf, ReadsArraysOfStringsFloatsAndArrays) {
  GgufSpec spec;
  spec.SetStrings("strings", {"a", "", "ccc"});
  spec.Set("floats", GgufType::kArray, PackedArray(GgufType::kF64, 1, Packed(0.25)));
  const std::string inner = PackedArray(GgufType::kU8, 2, "\x01\x02");
  spec.Set("nested", GgufType::kArray, PackedArray(GgufType::kArray, 2, inner + inner));
  spec.SetU32("after", 5);
  const std::string bytes = spec.Build();
  const auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->GetStringArray("strings"), (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(file->GetFloatArray("floats"), std::vector<float>{0.25f});
  EXPECT_EQ(file->GetInt("after"), 5);
  EXPECT_EQ(GgufValueText(*file->Find("nested"), 4), "[[1, 2], [1, 2]]");
}

TEST(Gguf, SaysWhatAValueIsAndWhatIsWanted) {
  GgufSpec spec;
  spec.SetString("text", "x");
  spec.SetU32("number", 1);
  spec.SetStrings("list", {"x"});
  spec.Set("huge", GgufType::kU64, Packed(std::numeric_limits<uint64_t>::max()));
  spec.Set("maybe", GgufType::kBool, "\x02");
  spec.Set("flood", GgufType::kArray,
           testing::PackedArray(GgufType::kString, 2000001, std::string(2000001 * 8, 0)));
  const std::string bytes = spec.Build();
  const auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->GetInt("text").error().message, "gguf: text is a string, an integer is wanted");
  EXPECT_EQ(file->FindInt("text").error().message, "gguf: text is a string, an integer is wanted");
  EXPECT_EQ(file->GetFloat("number").error().message,
            "gguf: number is a u32, a floating-point number is wanted");
  EXPECT_EQ(file->FindIntArray("list").error().message,
            "gguf: list is an array of string, an array of integers is wanted");
  EXPECT_EQ(file->GetStringArray("flood").error().message,
            "gguf: flood has 2000001 strings, at most 2000000 are possible");
  EXPECT_EQ(file->GetStringArray("number").error().message,
            "gguf: number is a u32, an array of strings is wanted");
  EXPECT_EQ(file->GetInt("huge").error().message,
            "gguf: huge is 18446744073709551615, at most 9223372036854775807 is possible");
  EXPECT_EQ(file->FindBool("maybe").error().message,
            "gguf: maybe is a bool of value 2, 0 or 1 is possible");
  EXPECT_EQ(file->GetString("absent").error().message, "gguf: absent is missing");
  EXPECT_EQ(file->GetString("absent").error().code, ErrorCode::kCorrupt);
}

TEST(Gguf, PlacesTensorsByAlignmentAndListsShapesOutermostFirst) {
  GgufSpec spec = SmallSpec();
  spec.SetU32("general.alignment", 64);
  spec.alignment = 64;
  spec.tensors.push_back({.name = "q4", .dims = {256}, .type = 12, .data = std::string(144, 'q')});
  spec.tensors.push_back({.name = "q8", .dims = {32, 2}, .type = 8, .data = std::string(68, 'r')});
  const std::string bytes = spec.Build();
  const auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const TensorInfo* a = file->tensors().Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a->dtype, DType::kF32);
  EXPECT_EQ(a->num_bytes, 24);
  EXPECT_EQ(*reinterpret_cast<const char*>(a->data), 'x');
  const TensorInfo* q4 = file->tensors().Find("q4");
  EXPECT_EQ(q4->type_name, "Q4_K");
  EXPECT_EQ(q4->dtype, std::nullopt);
  EXPECT_EQ(*reinterpret_cast<const char*>(q4->data), 'q');
  EXPECT_EQ(file->tensors().Find("q8")->dtype, DType::kQ8_0);
  EXPECT_EQ(file->tensors().Find("b"), nullptr);
}

TEST(Gguf, KeepsWhatItHandsOutWhenMoved) {
  const std::string bytes = SmallSpec().Build();
  auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value());
  const GgufFile moved = *std::move(file);
  EXPECT_EQ(moved.GetString("general.architecture"), "llama");
  EXPECT_NE(moved.tensors().Find("a"), nullptr);
}

using Damage = testing::Damage<std::function<void(GgufSpec&)>>;

class GgufDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(GgufDamage, IsOneClearSentence) {
  GgufSpec spec = SmallSpec();
  GetParam().change(spec);
  testing::ExpectRefused(ParseError(spec.Build()), GetParam());
}

constexpr uint64_t kHuge = uint64_t{1} << 63;

const Damage kDamages[] = {
    {"Magic", [](GgufSpec& s) { s.magic = "GGML"; }, "it begins with \"GGML\""},
    {"Version1", [](GgufSpec& s) { s.version = 1; }, "GGUF version 1, only 2 and 3 are possible",
     ErrorCode::kUnsupported},
    {"Version4", [](GgufSpec& s) { s.version = 4; }, "GGUF version 4", ErrorCode::kUnsupported},
    {"BigEndian", [](GgufSpec& s) { s.version = 3u << 24; }, "big-endian", ErrorCode::kUnsupported},
    {"TensorCount", [](GgufSpec& s) { s.num_tensors = kHuge; },
     "the number of tensors is 9223372036854775808, the file has room for"},
    {"EntryCount", [](GgufSpec& s) { s.num_entries = kHuge; }, "the number of metadata entries is"},
    {"MoreEntriesThanThereAre", [](GgufSpec& s) { s.num_entries = 4; }, "gguf: "},
    {"StringOf2To63Bytes", [](GgufSpec& s) { s.Set("x", GgufType::kString, Packed(kHuge)); },
     "the file ends inside a value: 9223372036854775808 bytes wanted"},
    {"KeyOf2To63Bytes",
     [](GgufSpec& s) {
       s.num_tensors = 0;
       s.num_entries = 1;
       s.entries = {};
       s.magic = "GGUF" + Packed(s.version) + Packed<uint64_t>(0) + Packed<uint64_t>(1) +
                 Packed(kHuge) + std::string(64, ' ');
     },
     "the length of a metadata key at offset 32 is 9223372036854775808, at most 65535"},
    {"TwoEqualKeys", [](GgufSpec& s) { s.entries.push_back(s.entries.front()); },
     "there are two metadata entries \"general.architecture\""},
    {"UnknownValueType", [](GgufSpec& s) { s.entries[0].type = 13; }, "is 13, 0 to 12 is possible"},
    {"UnknownElementType",
     [](GgufSpec& s) {
       s.Set("x", GgufType::kArray, PackedArray(static_cast<GgufType>(99), 0, ""));
     },
     "is 99, 0 to 12 is possible"},
    {"ArrayLongerThanTheFile",
     [](GgufSpec& s) { s.Set("x", GgufType::kArray, PackedArray(GgufType::kU64, kHuge, "")); },
     "an array of 9223372036854775808 elements of type u64 is announced"},
    {"ArrayOfStringsLongerThanTheFile",
     [](GgufSpec& s) { s.Set("x", GgufType::kArray, PackedArray(GgufType::kString, 1000, "")); },
     "an array of 1000 elements of type string is announced"},
    {"ArraysNestedTooDeep",
     [](GgufSpec& s) {
       std::string array = PackedArray(GgufType::kU8, 0, "");
       for (int i = 0; i < 5; ++i) array = PackedArray(GgufType::kArray, 1, array);
       s.Set("x", GgufType::kArray, array);
     },
     "arrays are nested deeper than 4", ErrorCode::kUnsupported},
    {"Alignment0", [](GgufSpec& s) { s.SetU32("general.alignment", 0); },
     "general.alignment is 0, a power of two is wanted"},
    {"Alignment24", [](GgufSpec& s) { s.SetU32("general.alignment", 24); },
     "general.alignment is 24, a power of two is wanted"},
    {"AlignmentAsString", [](GgufSpec& s) { s.SetString("general.alignment", "32"); },
     "general.alignment is a string, an integer is wanted"},
    {"AlignmentLargerThanTheFile",
     [](GgufSpec& s) { s.Set("general.alignment", GgufType::kU64, Packed(kHuge >> 1)); },
     "tensor \"a\" has 24 bytes at offset 0, the file holds 0 bytes of tensors"},
    {"NoDimensions", [](GgufSpec& s) { s.tensors[0].num_dims = 0; },
     "tensor \"a\" has 0 dimensions, 1 to 4 is possible"},
    {"TooManyDimensions", [](GgufSpec& s) { s.tensors[0].num_dims = 255; },
     "tensor \"a\" has 255 dimensions, 1 to 4 is possible"},
    {"DimensionOf0",
     [](GgufSpec& s) {
       s.tensors[0].dims = {3, 0};
     },
     "tensor \"a\": dimension 1 is 0, 1 to 9223372036854775807 is possible"},
    {"DimensionOf2To63",
     [](GgufSpec& s) {
       s.tensors[0].dims = {3, kHuge};
     },
     "dimension 1 is 9223372036854775808"},
    {"ProductThatOverflows",
     [](GgufSpec& s) {
       s.tensors[0].dims = {uint64_t{1} << 32, uint64_t{1} << 32};
     },
     "the shape [4294967296, 4294967296] is more than 2^63 bytes"},
    {"RowThatOverflows", [](GgufSpec& s) { s.tensors[0].dims = {uint64_t{1} << 62}; },
     "is more than 2^63 bytes"},
    {"RowOfPartialBlocks",
     [](GgufSpec& s) {
       s.tensors[0].type = 8;
       s.tensors[0].dims = {33};
     },
     "a row has 33 elements, a multiple of 32 is wanted for Q8_0"},
    {"UnknownTensorType", [](GgufSpec& s) { s.tensors[0].type = 4; },
     "has the type number 4, which no known ggml type has", ErrorCode::kUnsupported},
    {"OffsetNotAligned", [](GgufSpec& s) { s.tensors[0].offset = 16; },
     "has the offset 16, a multiple of 32 is wanted"},
    {"OffsetPastTheEnd", [](GgufSpec& s) { s.tensors[0].offset = kHuge; },
     "tensor \"a\" has 24 bytes at offset 9223372036854775808, the file holds 24 bytes"},
    {"DataPastTheEnd", [](GgufSpec& s) { s.tensors[0].data.pop_back(); },
     "tensor \"a\" has 24 bytes at offset 0, the file holds 23 bytes of tensors"},
    {"TensorsThatOverlap",
     [](GgufSpec& s) {
       s.tensors[0].data += std::string(64, 'x');
       s.tensors[0].dims = {3, 4};
       s.tensors.push_back({.name = "b", .dims = {1}, .data = "1234", .offset = 32});
     },
     "tensors \"a\" and \"b\" overlap"},
    {"TwoTensorsOfOneName",
     [](GgufSpec& s) { s.tensors.push_back({.name = "a", .dims = {1}, .data = "1234"}); },
     "there are two tensors of the name \"a\""},
    {"NameFullOfEscapes",
     [](GgufSpec& s) {
       s.tensors[0].name = "\x1b[2J\"" + std::string(1000, 'n');
       s.tensors[0].num_dims = 0;
     },
     "tensor \"\\x1b[2J\\x22nnn"},
};

INSTANTIATE_TEST_SUITE_P(All, GgufDamage, ::testing::ValuesIn(kDamages), testing::DamageName());

TEST(Gguf, RefusesAFileCutAtAnyByte) {
  GgufSpec spec = SmallSpec();
  spec.SetStrings("strings", {"abc", "de"});
  spec.SetU32("number", 7);
  const std::string bytes = spec.Build();
  ASSERT_TRUE(GgufFile::Parse(AsBytes(bytes)).has_value());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);  // its own memory: a sanitizer sees the end
    EXPECT_EQ(ParseError(cut).code, ErrorCode::kCorrupt) << "cut at " << size;
  }
}

TEST(Gguf, ReadsTheFileOfAModel) {
  const auto file = GgufFile::Open(testing::TestModel("tiny-words.gguf"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->tensors().all().size(), 47u);
  EXPECT_EQ(file->GetInt("llama.block_count"), 5);
  EXPECT_EQ(file->GetStringArray("tokenizer.ggml.tokens")->at(1), "<s>");
  EXPECT_EQ(file->GetFloatArray("tokenizer.ggml.scores")->size(), 512u);
  EXPECT_EQ(file->tensors().Find("blk.4.ffn_down.weight")->shape, (std::vector<int64_t>{32, 48}));
}

TEST(Gguf, NamesTheFileThatIsMissing) {
  const auto file = GgufFile::Open("/no/such/model.gguf");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_NE(file.error().message.find("/no/such/model.gguf"), std::string::npos);
}

}  // namespace
}  // namespace kvick
