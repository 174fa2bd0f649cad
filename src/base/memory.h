#ifndef KVICK_BASE_MEMORY_H_
#define KVICK_BASE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kvick/status.h"

namespace kvick {

inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;

// Memory that this process could still take without swapping or being killed: the smallest of what
// the machine has available, what its control group leaves and what its address-space limit leaves.
int64_t AvailableMemoryBytes();

enum class Backing {
  kUpFront,   ///< every page is backed before Create returns: no fault, no surprise later
  kOnDemand,  ///< pages are backed when first written, 2 MiB at a time where the system can
  kOnDemandInSmallPages,  ///< for writes far apart: huge pages would back what stays empty
};

// Anonymous zeroed memory at an address that never changes, aligned to 2 MiB.
// Move-only; unmapped on destruction.
class MappedRegion {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 62;

  // REQUIRES: 0 < num_bytes <= kMaxBytes.
  // Errors: exhausted: the machine cannot give that many bytes.
  static Result<MappedRegion> Create(int64_t num_bytes, Backing backing);

  MappedRegion() = default;
  MappedRegion(MappedRegion&& other) noexcept;
  MappedRegion& operator=(MappedRegion&& other) noexcept;
  ~MappedRegion();

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return num_bytes_; }

 private:
  MappedRegion(std::byte* data, int64_t num_bytes) : data_(data), num_bytes_(num_bytes) {}

  std::byte* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

// A whole file, read-only, shared with the page cache: opening it takes no private memory.
// Move-only; unmapped on destruction.
class MappedFile {
 public:
  // Errors: not_found, io; invalid_argument: not a regular file; corrupt: an empty one.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::byte* data() const { return data_; }
  int64_t size_bytes() const { return num_bytes_; }

 private:
  MappedFile(const std::byte* data, int64_t num_bytes) : data_(data), num_bytes_(num_bytes) {}

  const std::byte* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

}  // namespace kvick

#endif  // KVICK_BASE_MEMORY_H_
