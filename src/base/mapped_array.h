#ifndef KVICK_BASE_MAPPED_ARRAY_H_
#define KVICK_BASE_MAPPED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"

namespace kvick {

// A table whose size comes from outside: num_elements zeroed elements of mapped memory, or an
// error. On demand it costs nothing until elements are written, however long it is.
template <class T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // REQUIRES: num_elements > 0. `what` names the table in messages.
  // Errors  exhausted: the machine has less memory than that
  static Result<MappedArray> Create(const char* what, int64_t num_elements, Backing backing) {
    KVICK_CHECK(num_elements > 0);
    const auto num_bytes = CheckedProduct({num_elements, static_cast<int64_t>(sizeof(T))});
    if (!num_bytes || *num_bytes > MappedRegion::kMaxBytes) {
      return Fail(ErrorCode::kExhausted, "{}: expected at most 2^62 bytes, got {} elements of {}",
                  what, num_elements, sizeof(T));
    }
    // A whole huge page for a short table would cost more than all of its elements.
    if (*num_bytes < kHugePageBytes) backing = Backing::kOnDemandInSmallPages;
    auto region = MappedRegion::Create(*num_bytes, backing);
    if (!region) return Fail(region.error().code, "{}: {}", what, region.error().message);
    return MappedArray(*std::move(region), num_elements);
  }

  int64_t size() const { return num_elements_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

 private:
  MappedArray(MappedRegion region, int64_t num_elements)
      : region_(std::move(region)), num_elements_(num_elements) {}

  T* data() const { return reinterpret_cast<T*>(region_.data()); }

  MappedRegion region_;
  int64_t num_elements_;
};

}  // namespace kvick

#endif  // KVICK_BASE_MAPPED_ARRAY_H_
