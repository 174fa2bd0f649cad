#ifndef KVICK_MEASURE_READ_LIMIT_H_
#define KVICK_MEASURE_READ_LIMIT_H_

#include <cstdint>
#include <utility>

#include "base/memory.h"
#include "kvick/status.h"

namespace kvick {

// The fastest plain read that this machine gives: what kernels are held against whose time is that
// of memory. Uses the widest vectors of the machine, whatever isa the kernels are forced to.
class ReadLimit {
 public:
  static constexpr int64_t kPassBytes = int64_t{128} << 20;

  // Passes go around a buffer of so many bytes, rounded up to whole passes: BytesBeyondCaches() for
  // reads from memory. Errors: exhausted.
  static Result<ReadLimit> Create(int64_t buffer_bytes);

  // Reads the next kPassBytes.
  void Pass(int num_threads);

 private:
  explicit ReadLimit(MappedRegion buffer) : buffer_(std::move(buffer)) {}

  MappedRegion buffer_;
  int64_t next_byte_ = 0;
  uint64_t sink_ = 0;  // what was read: no compiler may leave the loads out
};

// Read bandwidth in 10^9 bytes a second: the best of some passes beyond the caches.
// Cost: 1 GiB or more for about a second. Errors: exhausted.
Result<double> MeasureReadBandwidth(int num_threads);

}  // namespace kvick

#endif  // KVICK_MEASURE_READ_LIMIT_H_
