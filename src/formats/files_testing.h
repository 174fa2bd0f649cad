#ifndef KVICK_FORMATS_FILES_TESTING_H_
#define KVICK_FORMATS_FILES_TESTING_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

// For tests: bytes, files and test models.
namespace kvick::testing {

// The first folder above this file, or above the working folder, that holds `path`, with `path`
// appended; empty if there is none.
inline std::string FindAbove(std::string_view path) {
  for (std::filesystem::path place :
       {std::filesystem::absolute(__FILE__), std::filesystem::current_path() / "."}) {
    while (place.has_relative_path()) {
      place = place.parent_path();
      if (std::filesystem::exists(place / path)) return place / path;
    }
  }
  return "";
}

// A file or folder of tests/data/models, which is a part of the repository.
inline std::string TestModel(std::string_view name) {
  return FindAbove("tests/data/models/" + std::string(name));
}

// The folder of more test models: $KVICK_TEST_MODELS, or shared/models beside the repository or
// above. Empty where there is none: GTEST_SKIP() << kNoTestModels.
inline std::string TestModelsFolder() {
  if (const char* folder = std::getenv("KVICK_TEST_MODELS")) return folder;
  return FindAbove("shared/models");
}
inline constexpr const char* kNoTestModels =
    "no further test models: set KVICK_TEST_MODELS, or put them into ../shared/models";

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A folder of its own, gone with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvick-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(std::string_view name) const { return path_ / name; }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_FILES_TESTING_H_
