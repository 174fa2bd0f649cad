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
  // Passes go around a buffer of about so many bytes: BytesBeyondCaches() for reads from memory.
  // Errors: exhausted.
  static Result<ReadLimit> Create(int64_t buffer_bytes);

  // Reads the next pass_bytes().
  void Pass(int num_threads);
  int64_t pass_bytes() const { return pass_bytes_; }

 private:
  ReadLimit(MappedRegion buffer, int64_t pass_bytes)
      : buffer_(std::move(buffer)), pass_bytes_(pass_bytes) {}

  MappedRegion buffer_;
  int64_t pass_bytes_;
  int64_t next_byte_ = 0;
  uint64_t sink_ = 0;  // what was read: no compiler may leave the loads out
};

// Read bandwidth in 10^9 bytes a second: the best of some passes beyond the caches.
// Cost: 1 GiB or more for about a second. Errors: exhausted.
Result<double> MeasureReadBandwidth(int num_threads);

}  // namespace kvick

#endif  // KVICK_MEASURE_READ_LIMIT_H_
