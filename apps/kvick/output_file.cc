#include "output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/check.h"

namespace kvick::cli {
namespace {

// False, and errno, where it could not be written.
bool WriteTo(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool is_written = std::ranges::all_of(parts, [&](std::string_view part) {
    return std::fwrite(part.data(), 1, part.size(), file) == part.size();
  });
  return std::fclose(file) == 0 && is_written;
}

}  // namespace

Status WriteFile(const std::string& path, std::initializer_list<std::string_view> parts) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_there = fs::exists(path, ignored);
  bool is_written = false;
  std::string partial;
  if (is_there && !fs::is_regular_file(path, ignored)) {  // a pipe, a device: nothing to replace
    is_written = WriteTo(path, parts);
  } else {
    const std::string target = is_there ? fs::canonical(path, ignored).string() : path;
    partial = fmt::format("{}.partial-{}", target, getpid());
    is_written = WriteTo(partial, parts) && std::rename(partial.c_str(), target.c_str()) == 0;
  }
  if (is_written) return {};
  const int saved = errno;
  if (!partial.empty()) std::remove(partial.c_str());
  return Fail(ErrorCode::kIo, "{}: cannot be written: {}", path, std::strerror(saved));
}

}  // namespace kvick::cli
