#include "base/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// "MemAvailable:   24001234 kB" -> bytes.
int64_t MachineAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnlimited;
}

// A control-group file holds one number, or "max".
int64_t ReadCgroupNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : kUnlimited;
}

// What a group has used includes pages of files that it would give back: a model that was read.
int64_t ReclaimableBytes(const std::string& folder) {
  std::ifstream file(folder + "/memory.stat");
  std::string key;
  int64_t value = 0;
  while (file >> key >> value) {
    if (key == "inactive_file") return value;
  }
  return 0;
}

// Every group from our own up to the root may set a limit. "0::/user.slice/x" names our own.
int64_t CgroupAvailableBytes() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  if (!std::getline(file, line) || line.rfind("0::", 0) != 0) return kUnlimited;
  std::string group = line.substr(3);
  int64_t available = kUnlimited;
  while (true) {
    const std::string folder = "/sys/fs/cgroup" + group;
    const int64_t limit = ReadCgroupNumber(folder + "/memory.max");
    const int64_t used = ReadCgroupNumber(folder + "/memory.current");
    if (limit != kUnlimited && used != kUnlimited) {
      const int64_t left = limit - used + ReclaimableBytes(folder);
      available = std::min(available, std::max<int64_t>(0, left));
    }
    if (group.size() <= 1) return available;
    group.resize(group.find_last_of('/'));
  }
}

int64_t AddressSpaceAvailableBytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  const int64_t used = pages * sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used);
}

// Backs every page now. Kernels before 5.14 lack the advice, so there each page is written.
bool Populate(std::byte* data, int64_t num_bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, static_cast<size_t>(num_bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  for (int64_t i = 0; i < num_bytes; i += page_bytes) {
    *reinterpret_cast<volatile std::byte*>(data + i) = std::byte{0};
  }
  return true;
}

void Unmap(const std::byte* data, int64_t num_bytes) {
  if (data != nullptr) munmap(const_cast<std::byte*>(data), static_cast<size_t>(num_bytes));
}

}  // namespace

int64_t AvailableMemoryBytes() {
  return std::min({MachineAvailableBytes(), CgroupAvailableBytes(), AddressSpaceAvailableBytes()});
}

Result<MappedRegion> MappedRegion::Create(int64_t num_bytes, Backing backing) {
  KVICK_CHECK(num_bytes > 0 && num_bytes <= kMaxBytes);
  const auto too_much = [num_bytes](int64_t available) {
    return Fail(ErrorCode::kExhausted, "memory: expected at most the {} available bytes, got {}",
                available, num_bytes);
  };
  if (backing == Backing::kUpFront) {
    const int64_t available = AvailableMemoryBytes();
    if (num_bytes > available) return too_much(available);
  }
  // One huge page more, so that an aligned start lies inside; then trim both ends.
  const int64_t size = RoundUp(num_bytes, kHugePageBytes);
  const int64_t mapped = size + kHugePageBytes;
  void* start = mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return too_much(AvailableMemoryBytes());
  auto* base = static_cast<std::byte*>(start);
  const int64_t skip =
      -static_cast<int64_t>(reinterpret_cast<uintptr_t>(base)) & (kHugePageBytes - 1);
  if (skip > 0) Unmap(base, skip);
  if (skip < kHugePageBytes) Unmap(base + skip + size, kHugePageBytes - skip);
  MappedRegion region(base + skip, size);
  const bool in_small_pages = backing == Backing::kOnDemandInSmallPages;
  madvise(region.data_, static_cast<size_t>(size),
          in_small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);  // advice: refusal costs speed only
  if (backing == Backing::kUpFront && !Populate(region.data_, size)) {
    return Fail(ErrorCode::kExhausted, "memory: the system could not back {} bytes: {}", num_bytes,
                std::strerror(errno));
  }
  return region;
}

MappedRegion::MappedRegion(MappedRegion&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}

MappedRegion& MappedRegion::operator=(MappedRegion&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

MappedRegion::~MappedRegion() { Unmap(data_, num_bytes_); }

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}", path,
                std::strerror(errno));
  }
  struct stat info {};
  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!is_file || info.st_size == 0) {
    close(fd);
    if (!is_file) return Fail(ErrorCode::kInvalidArgument, "{}: not a regular file", path);
    return Fail(ErrorCode::kCorrupt, "{}: the file is empty", path);
  }
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  const int map_errno = errno;
  close(fd);
  if (data == MAP_FAILED) return Fail(ErrorCode::kIo, "{}: {}", path, std::strerror(map_errno));
  return MappedFile(static_cast<const std::byte*>(data), info.st_size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

MappedFile::~MappedFile() { Unmap(data_, num_bytes_); }

}  // namespace kvick
