#include "npy.h"

#include <fmt/format.h>

#include <bit>

#include "output_file.h"

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

}  // namespace

Status WriteNpy(const std::string& path, std::span<const float> data, int64_t num_cols) {
  const std::string header = NpyHeader(std::ssize(data) / num_cols, num_cols);
  return WriteFile(path, {header, {reinterpret_cast<const char*>(data.data()), data.size_bytes()}});
}

}  // namespace kvick::cli
