#include "npy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/check.h"

namespace kvick::cli {

static_assert(std::endian::native == std::endian::little, "the header says <f4");

namespace {

// Magic, version, header length, header; the data start at a multiple of 64.
std::string NpyHeader(int64_t num_rows, int64_t num_cols) {
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", num_rows, num_cols);
  constexpr size_t kPreamble = 10;
  header.append(63 - (kPreamble + header.size()) % 64, ' ').push_back('\n');
  std::string preamble("\x93NUMPY\x01\x00", 8);
  preamble.push_back(static_cast<char>(header.size() & 0xff));
  preamble.push_back(static_cast<char>(header.size() >> 8));
  return preamble + header;
}

// False, and errno, where it could not be written.
bool WriteFile(const std::string& path, const std::string& header, std::span<const float> data) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool is_written = std::fwrite(header.data(), 1, header.size(), file) == header.size() &&
                          std::fwrite(data.data(), sizeof(float), data.size(), file) == data.size();
  return std::fclose(file) == 0 && is_written;
}

}  // namespace

Status WriteNpy(const std::string& path, std::span<const float> data, int64_t num_cols) {
  namespace fs = std::filesystem;
  const std::string header = NpyHeader(static_cast<int64_t>(data.size()) / num_cols, num_cols);
  std::error_code ignored;
  const bool is_there = fs::exists(path, ignored);
  bool is_written = false;
  std::string partial;
  if (is_there && !fs::is_regular_file(path, ignored)) {  // a pipe, a device: nothing to replace
    is_written = WriteFile(path, header, data);
  } else {
    const std::string target = is_there ? fs::canonical(path, ignored).string() : path;
    partial = fmt::format("{}.partial-{}", target, getpid());
    is_written =
        WriteFile(partial, header, data) && std::rename(partial.c_str(), target.c_str()) == 0;
  }
  if (is_written) return {};
  const int saved = errno;
  if (!partial.empty()) std::remove(partial.c_str());
  return Fail(ErrorCode::kIo, "{}: cannot be written: {}", path, std::strerror(saved));
}

}  // namespace kvick::cli
