#include "output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

using Parts = std::initializer_list<std::string_view>;

bool WriteParts(std::FILE* file, Parts parts) {
  return std::ranges::all_of(parts, [&](std::string_view part) {
    return std::fwrite(part.data(), 1, part.size(), file) == part.size();
  });
}

// False, and errno, where it could not be written.
bool WriteTo(const std::string& path, Parts parts) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool is_written = WriteParts(file, parts);
  return std::fclose(file) == 0 && is_written;
}

Status WriteStdout(Parts parts) {
  if (WriteParts(stdout, parts) && std::fflush(stdout) == 0) return {};
  return Fail(ErrorCode::kIo, "stdout: cannot write: {}", std::strerror(errno));
}

tl::unexpected<Error> CannotWrite(const std::string& path, int error) {
  return Fail(ErrorCode::kIo, "{}: cannot write: {}", ShownName(path), std::strerror(error));
}

}  // namespace

Status WriteFile(const std::string& path, std::initializer_list<std::string_view> parts) {
  namespace fs = std::filesystem;
  if (path == "-") return WriteStdout(parts);
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
  return CannotWrite(path, saved);
}

Status CheckWritable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path == "-") return {};
  if (fs::is_directory(path, ignored)) return CannotWrite(path, EISDIR);
  if (fs::exists(path, ignored)) {
    return access(path.c_str(), W_OK) == 0 ? Status() : CannotWrite(path, errno);
  }
  const fs::path folder = fs::path(path).parent_path();
  const char* name = folder.empty() ? "." : folder.c_str();
  return access(name, W_OK | X_OK) == 0 ? Status() : CannotWrite(path, errno);
}

}  // namespace kvick::cli
