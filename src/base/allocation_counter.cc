#include "base/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/has_sanitizer.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

namespace kvick {

int64_t NumAllocations() { return num_allocations.load(); }

}  // namespace kvick

#if defined(KVICK_HAS_SANITIZER)

void* operator new(size_t num_bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(num_bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t num_bytes, const std::nothrow_t&) noexcept {  // std::stable_partition
  ++num_allocations;
  return std::malloc(num_bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

#else

// glibc's own, under the names that it keeps for this.
extern "C" {
void* __libc_malloc(size_t num_bytes);
void* __libc_calloc(size_t num, size_t num_bytes);
void* __libc_realloc(void* memory, size_t num_bytes);
void* __libc_memalign(size_t alignment, size_t num_bytes);

void* malloc(size_t num_bytes) {
  ++num_allocations;
  return __libc_malloc(num_bytes);
}
void* calloc(size_t num, size_t num_bytes) {
  ++num_allocations;
  return __libc_calloc(num, num_bytes);
}
void* realloc(void* memory, size_t num_bytes) {
  ++num_allocations;
  return __libc_realloc(memory, num_bytes);
}
void* aligned_alloc(size_t alignment, size_t num_bytes) {
  ++num_allocations;
  return __libc_memalign(alignment, num_bytes);
}
}

#endif
