#include "formats/hf_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/files_testing.h"
#include "formats/safetensors_testing.h"

namespace kvick {
namespace {

using testing::SafetensorsBytes;
using testing::TempFolder;
using testing::WriteFile;

constexpr const char* kIndex = "model.safetensors.index.json";

// config.json and two shards: a in one.safetensors, b and c in two.safetensors.
void WriteShards(const TempFolder& folder, std::string_view index) {
  WriteFile(folder / "config.json", R"({"model_type":"llama"})");
  WriteFile(folder / "one.safetensors", SafetensorsBytes({{"a", "F32", {1}, "aaaa"}}));
  WriteFile(folder / "two.safetensors",
            SafetensorsBytes({{"b", "F32", {1}, "bbbb"}, {"c", "F32", {1}, "cccc"}}));
  WriteFile(folder / kIndex, index);
}

Error OpenError(const TempFolder& folder) {
  const auto opened = HfFolder::Open(folder.path());
  return opened ? Error{ErrorCode::kInternal, "no error"} : opened.error();
}

TEST(HfFolder, OpensOneFile) {
  const TempFolder folder;
  WriteFile(folder / "config.json", R"({"model_type":"llama"})");
  WriteFile(folder / "model.safetensors", SafetensorsBytes({{"a", "F32", {1}, "aaaa"}}));
  const auto opened = HfFolder::Open(folder.path());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->config().at("model_type"), "llama");
  EXPECT_EQ(*reinterpret_cast<const char*>(opened->tensors().Find("a")->data), 'a');
  EXPECT_EQ(opened->path(), folder.path());
  EXPECT_EQ(opened->tensors_path(), folder / "model.safetensors");
}

TEST(HfFolder, OpensShardsByTheirIndex) {
  const TempFolder folder;
  WriteShards(folder, R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})");
  const auto opened = HfFolder::Open(folder.path());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(*reinterpret_cast<const char*>(opened->tensors().Find("a")->data), 'a');
  EXPECT_EQ(*reinterpret_cast<const char*>(opened->tensors().Find("c")->data), 'c');
  EXPECT_EQ(opened->tensors().Find("b"), nullptr);
}

TEST(HfFolder, SaysWhatIsMissing) {
  const TempFolder folder;
  EXPECT_NE(OpenError(folder).message.find("config.json: No such file"), std::string::npos);
  WriteFile(folder / "config.json", "{}");
  EXPECT_EQ(OpenError(folder).code, ErrorCode::kNotFound);
  EXPECT_NE(OpenError(folder).message.find(
                "expected model.safetensors or model.safetensors.index.json, got neither"),
            std::string::npos);
  WriteFile(folder / "config.json", "[]");
  EXPECT_NE(OpenError(folder).message.find("config.json: expected an object, got an array"),
            std::string::npos);
}

TEST(HfFolder, RefusesAnIndexAtOddsWithTheShards) {
  const TempFolder folder;
  WriteShards(folder, R"({"weight_map":{"a":"two.safetensors"}})");
  EXPECT_NE(OpenError(folder).message.find("two.safetensors: tensor \"a\" is missing, although"),
            std::string::npos)
      << OpenError(folder).message;
  WriteFile(folder / kIndex, R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_EQ(OpenError(folder).code, ErrorCode::kNotFound);
  WriteFile(folder / kIndex, R"({"weight_map":[]})");
  EXPECT_EQ(OpenError(folder).message,
            (folder / kIndex) + ": weight_map: expected an object, got an array");
  WriteFile(folder / kIndex, "7");
  EXPECT_EQ(OpenError(folder).message, (folder / kIndex) + ": weight_map is missing");
}

TEST(HfFolder, RefusesShardsOutsideOfTheFolder) {
  const TempFolder folder;
  WriteShards(folder, "{}");
  WriteFile(folder / "sub.safetensors", SafetensorsBytes({{"a", "F32", {1}, "aaaa"}}));
  std::filesystem::create_directory(folder / "inner");
  std::filesystem::copy(folder / "config.json", folder / "inner/config.json");
  for (const char* shard : {R"("../sub.safetensors")", R"("/etc/passwd")", R"("..")", R"("")", "7",
                            R"("a\u0000.safetensors")", R"("x/../one.safetensors")"}) {
    WriteFile(folder / "inner/model.safetensors.index.json",
              std::string(R"({"weight_map":{"a":)") + shard + "}}");
    const auto opened = HfFolder::Open(folder / "inner");
    ASSERT_FALSE(opened.has_value()) << shard;
    EXPECT_NE(opened.error().message.find("expected the name of a file in this folder, got"),
              std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace kvick
