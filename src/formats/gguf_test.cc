#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/hash_flood_testing.h"
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
  EXPECT_EQ(file->GetInt("text").error().message, "gguf: text: expected an integer, got a string");
  EXPECT_EQ(file->FindInt("text").error().message, "gguf: text: expected an integer, got a string");
  EXPECT_EQ(file->GetFloat("number").error().message,
            "gguf: number: expected a floating-point number, got a u32");
  EXPECT_EQ(file->FindIntArray("list").error().message,
            "gguf: list: expected an array of integers, got an array of string");
  EXPECT_EQ(file->GetStringArray("flood").error().message,
            "gguf: flood: expected at most 2000000 elements, got 2000001");
  EXPECT_EQ(file->GetStringArray("number").error().message,
            "gguf: number: expected an array of strings, got a u32");
  EXPECT_EQ(file->GetInt("huge").error().message,
            "gguf: huge: expected at most 9223372036854775807, got 18446744073709551615");
  EXPECT_EQ(file->FindBool("maybe").error().message,
            "gguf: maybe: expected a bool of 0 or 1, got 2");
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
  EXPECT_EQ(a->format, &FormatOf(WeightType::kF32));
  EXPECT_EQ(a->num_bytes, 24);
  EXPECT_EQ(*reinterpret_cast<const char*>(a->data), 'x');
  const TensorInfo* q4 = file->tensors().Find("q4");
  EXPECT_EQ(q4->type_name, "Q4_K");
  EXPECT_EQ(q4->format, &FormatOf(WeightType::kQ4_K));
  EXPECT_EQ(*reinterpret_cast<const char*>(q4->data), 'q');
  EXPECT_EQ(file->tensors().Find("q8")->format, &FormatOf(WeightType::kQ8_0));
  EXPECT_EQ(file->tensors().Find("b"), nullptr);
}

TEST(Gguf, ReadsTensorsWithoutElementsWhereverTheyLie) {
  GgufSpec spec = SmallSpec();
  spec.tensors.insert(spec.tensors.begin(), {.name = "before", .dims = {0}});
  spec.tensors.push_back({.name = "b", .dims = {1}, .data = "1234"});
  spec.tensors.push_back({.name = "behind", .dims = {2, 0, uint64_t{1} << 62}, .offset = 4096});
  const std::string bytes = spec.Build();
  const auto file = GgufFile::Parse(AsBytes(bytes));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->tensors().Find("before")->num_bytes, 0);
  EXPECT_EQ(file->tensors().Find("behind")->shape, (std::vector<int64_t>{int64_t{1} << 62, 0, 2}));
  EXPECT_EQ(*reinterpret_cast<const char*>(file->tensors().Find("b")->data), '1');
}

// An array of `num_elements` of the type under the key "x", all of it a hole in the file.
void WriteSparseArray(const std::string& path, GgufType type, uint64_t num_elements) {
  GgufSpec spec;
  spec.SetString("general.architecture", "llama");
  spec.Set("x", GgufType::kArray, PackedArray(type, num_elements, ""));
  testing::WriteFile(path, spec.Build());
  std::filesystem::resize_file(path, uint64_t{40} << 30);
}

TEST(Gguf, TakesNoMemoryForArraysThatAreHoles) {
  const testing::TempFolder folder;
  const std::string path = folder / "sparse.gguf";
  for (const GgufType type : {GgufType::kU8, GgufType::kI8, GgufType::kU16, GgufType::kI16,
                              GgufType::kU32, GgufType::kI32, GgufType::kU64, GgufType::kI64}) {
    WriteSparseArray(path, type, 30'000'000);
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->FindIntArray("x").error().message,
              path + ": x: expected at most 2000000 elements, got 30000000");
  }
  for (const GgufType type : {GgufType::kF32, GgufType::kF64}) {
    WriteSparseArray(path, type, 30'000'000);
    EXPECT_EQ(GgufFile::Open(path)->GetFloatArray("x").error().code, ErrorCode::kUnsupported);
  }
  WriteSparseArray(path, GgufType::kString, 30'000'000);
  EXPECT_EQ(GgufFile::Open(path)->GetStringArray("x").error().code, ErrorCode::kUnsupported);
}

TEST(Gguf, WalksOverNoMoreThan256MebibytesOfHeader) {
  const testing::TempFolder folder;
  const std::string path = folder / "sparse.gguf";
  for (const GgufType type : {GgufType::kU8, GgufType::kString, GgufType::kArray}) {
    WriteSparseArray(path, type, 1'000'000'000);
    const auto file = GgufFile::Open(path);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(file.error().message.find(", got 1000000000"), std::string::npos)
        << file.error().message;
  }
}

// The names of 2^17 tensors and of 2^15 keys, all of one std::hash.
TEST(Gguf, OpensAFloodOfCollidingNamesInTheTimeOfOthers) {
  const auto seconds_to_open = [](const std::vector<std::string>& names) {
    GgufSpec spec;
    for (const std::string& name : names) {
      spec.tensors.push_back({.name = name, .dims = {0}});
      if (spec.entries.size() < names.size() / 4) spec.AddU32(name, 1);
    }
    const std::string bytes = spec.Build();
    const auto start = std::chrono::steady_clock::now();
    const auto file = GgufFile::Parse(AsBytes(bytes));
    EXPECT_TRUE(file.has_value()) << file.error().message;
    EXPECT_NE(file->tensors().Find(names.back()), nullptr);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto flood = testing::CollidingStrings(17);
  std::vector<std::string> others;
  for (size_t i = 0; i < flood.size(); ++i) {
    std::string name = std::to_string(i);
    name.resize(flood[i].size(), 'x');
    others.push_back(name);
  }
  EXPECT_LT(seconds_to_open(flood), 10 * seconds_to_open(others) + 1.0);
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
    {"Magic", [](GgufSpec& s) { s.magic = "GGML"; }, "got one that begins with \"GGML\""},
    {"Version1", [](GgufSpec& s) { s.version = 1; }, "expected GGUF version 2 or 3, got 1",
     ErrorCode::kUnsupported},
    {"Version4", [](GgufSpec& s) { s.version = 4; }, "expected GGUF version 2 or 3, got 4",
     ErrorCode::kUnsupported},
    {"BigEndian", [](GgufSpec& s) { s.version = 3u << 24; }, "big-endian", ErrorCode::kUnsupported},
    {"TensorCount", [](GgufSpec& s) { s.num_tensors = kHuge; },
     "tensors in a file of this size, got 9223372036854775808"},
    {"EntryCount", [](GgufSpec& s) { s.num_entries = kHuge; },
     "metadata entries in a file of this size, got 9223372036854775808"},
    {"MoreEntriesThanThereAre", [](GgufSpec& s) { s.num_entries = 4; }, "gguf: "},
    {"StringOf2To63Bytes", [](GgufSpec& s) { s.Set("x", GgufType::kString, Packed(kHuge)); },
     "expected 9223372036854775808 bytes, got the"},
    {"KeyOf2To63Bytes",
     [](GgufSpec& s) {
       s.num_tensors = 0;
       s.num_entries = 1;
       s.entries = {};
       s.magic = "GGUF" + Packed(s.version) + Packed<uint64_t>(0) + Packed<uint64_t>(1) +
                 Packed(kHuge) + std::string(64, ' ');
     },
     "the length of a metadata key at offset 32: expected at most 65535, got 9223372036854775808"},
    {"TwoEqualKeys", [](GgufSpec& s) { s.entries.push_back(s.entries.front()); },
     "expected one metadata entry \"general.architecture\", got two"},
    {"UnknownValueType", [](GgufSpec& s) { s.entries[0].type = 13; }, ": expected 0 to 12, got 13"},
    {"UnknownElementType",
     [](GgufSpec& s) {
       s.Set("x", GgufType::kArray, PackedArray(static_cast<GgufType>(99), 0, ""));
     },
     ": expected 0 to 12, got 99"},
    {"ArrayLongerThanTheFile",
     [](GgufSpec& s) { s.Set("x", GgufType::kArray, PackedArray(GgufType::kU64, kHuge, "")); },
     "elements of type u64, got 9223372036854775808"},
    {"ArrayOfStringsLongerThanTheFile",
     [](GgufSpec& s) { s.Set("x", GgufType::kArray, PackedArray(GgufType::kString, 1000, "")); },
     "elements of type string, got 1000"},
    {"ArraysNestedTooDeep",
     [](GgufSpec& s) {
       std::string array = PackedArray(GgufType::kU8, 0, "");
       for (int i = 0; i < 5; ++i) array = PackedArray(GgufType::kArray, 1, array);
       s.Set("x", GgufType::kArray, array);
     },
     "expected at most 4 arrays inside one another, got more", ErrorCode::kUnsupported},
    {"Alignment0", [](GgufSpec& s) { s.SetU32("general.alignment", 0); },
     "general.alignment: expected a power of two, got 0"},
    {"Alignment24", [](GgufSpec& s) { s.SetU32("general.alignment", 24); },
     "general.alignment: expected a power of two, got 24"},
    {"AlignmentAsString", [](GgufSpec& s) { s.SetString("general.alignment", "32"); },
     "general.alignment: expected an integer, got a string"},
    {"AlignmentLargerThanTheFile",
     [](GgufSpec& s) { s.Set("general.alignment", GgufType::kU64, Packed(kHuge >> 1)); },
     "tensor \"a\": expected 24 bytes at offset 0, got a file with 0 bytes of tensors"},
    {"NoDimensions", [](GgufSpec& s) { s.tensors[0].num_dims = 0; },
     "tensor \"a\": expected 1 to 4 dimensions, got 0"},
    {"TooManyDimensions", [](GgufSpec& s) { s.tensors[0].num_dims = 255; },
     "tensor \"a\": expected 1 to 4 dimensions, got 255"},
    {"DimensionOf2To63",
     [](GgufSpec& s) {
       s.tensors[0].dims = {3, kHuge};
     },
     "dimension 1: expected at most 9223372036854775807, got 9223372036854775808"},
    {"ProductThatOverflows",
     [](GgufSpec& s) {
       s.tensors[0].dims = {uint64_t{1} << 32, uint64_t{1} << 32};
     },
     "expected a shape of less than 2^63 bytes, got [4294967296, 4294967296]"},
    {"RowThatOverflows", [](GgufSpec& s) { s.tensors[0].dims = {uint64_t{1} << 62}; },
     "expected a shape of less than 2^63 bytes, got"},
    {"RowOfPartialBlocks",
     [](GgufSpec& s) {
       s.tensors[0].type = 8;
       s.tensors[0].dims = {33};
     },
     "expected rows of a multiple of 32 elements for Q8_0, got rows of 33"},
    {"UnknownTensorType", [](GgufSpec& s) { s.tensors[0].type = 4; },
     "expected the number of a ggml type, got 4", ErrorCode::kUnsupported},
    {"OffsetNotAligned", [](GgufSpec& s) { s.tensors[0].offset = 16; },
     "expected an offset that is a multiple of 32, got 16"},
    {"OffsetPastTheEnd", [](GgufSpec& s) { s.tensors[0].offset = kHuge; },
     "expected 24 bytes at offset 9223372036854775808, got a file with 24 bytes of tensors"},
    {"DataPastTheEnd", [](GgufSpec& s) { s.tensors[0].data.pop_back(); },
     "expected 24 bytes at offset 0, got a file with 23 bytes of tensors"},
    {"TensorsThatOverlap",
     [](GgufSpec& s) {
       s.tensors[0].data += std::string(64, 'x');
       s.tensors[0].dims = {3, 4};
       s.tensors.push_back({.name = "b", .dims = {1}, .data = "1234", .offset = 32});
     },
     "tensors \"a\" and \"b\" overlap"},
    {"TwoTensorsOfOneName",
     [](GgufSpec& s) { s.tensors.push_back({.name = "a", .dims = {1}, .data = "1234"}); },
     "expected one tensor \"a\", got two"},
    {"NameFullOfEscapes",
     [](GgufSpec& s) {
       s.tensors[0].name = "\x1b[2J\"" + std::string(1000, 'n');
       s.tensors[0].num_dims = 0;
     },
     "tensor \"\\x1b[2J\\\"nnn"},
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
