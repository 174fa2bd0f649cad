#include "npy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace kvick::cli {

static_assert(std::endian::native == std::endian::little, "the header says <f4");

Status WriteNpy(const std::string& path, std::span<const float> data, int64_t num_cols) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                  static_cast<int64_t>(data.size()) / num_cols, num_cols);
  constexpr size_t kPreamble = 10;  // magic, version, header length; the data start at 64 n
  header.append(63 - (kPreamble + header.size()) % 64, ' ').push_back('\n');
  std::string preamble("\x93NUMPY\x01\x00", 8);
  preamble.push_back(static_cast<char>(header.size() & 0xff));
  preamble.push_back(static_cast<char>(header.size() >> 8));

  const std::string partial = fmt::format("{}.partial-{}", path, getpid());
  std::FILE* file = std::fopen(partial.c_str(), "wb");
  bool good = file != nullptr;
  if (good) {
    good = std::fwrite(preamble.data(), 1, preamble.size(), file) == preamble.size() &&
           std::fwrite(header.data(), 1, header.size(), file) == header.size() &&
           std::fwrite(data.data(), sizeof(float), data.size(), file) == data.size();
    good = std::fclose(file) == 0 && good;
  }
  good = good && std::rename(partial.c_str(), path.c_str()) == 0;
  if (good) return {};
  const int saved = errno;
  std::remove(partial.c_str());
  return Fail(ErrorCode::kIo, "{}: cannot be written: {}", path, std::strerror(saved));
}

}  // namespace kvick::cli
