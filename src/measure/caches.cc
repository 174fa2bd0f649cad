#include "measure/caches.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "measure/cpuid_caches.h"

namespace kvick {
namespace {

namespace fs = std::filesystem;

// "266240K" -> bytes; 0 if there is no such file.
int64_t ReadSize(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  char unit = ' ';
  file >> value >> unit;
  return value * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
}

int64_t ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

// A cache shared by several processors is counted once, for the first of them.
int64_t BytesThatSystemTells() {
  int64_t last_level = 0, total_bytes = 0;
  for (int64_t cpu = 0;; ++cpu) {
    const fs::path caches =
        fs::path("/sys/devices/system/cpu") / ("cpu" + std::to_string(cpu)) / "cache";
    std::error_code ignored;
    if (!fs::exists(caches.parent_path(), ignored)) return total_bytes;
    for (int64_t i = 0;; ++i) {
      const fs::path cache = caches / ("index" + std::to_string(i));
      const int64_t level = ReadNumber(cache / "level");
      if (level < 0) break;
      if (level > last_level) {
        last_level = level;
        total_bytes = 0;
      }
      const bool is_first = ReadNumber(cache / "shared_cpu_list") == cpu;  // "0-1" begins with 0
      if (level == last_level && is_first) total_bytes += ReadSize(cache / "size");
    }
  }
}

}  // namespace

// A virtual machine may have no files about caches; its processor tells all the same.
int64_t LastLevelCacheBytes() {
  const int64_t num_bytes = BytesThatSystemTells();
  if (num_bytes > 0) return num_bytes;
  return LastLevelCacheBytes(ReadCpuid, sysconf(_SC_NPROCESSORS_ONLN));
}

int64_t BytesBeyondCaches() {
  constexpr int64_t kLeast = int64_t{1} << 30;
  return std::max(kLeast, 2 * LastLevelCacheBytes());
}

}  // namespace kvick
