#ifndef KVICK_MEASURE_READ_LIMIT_H_
#define KVICK_MEASURE_READ_LIMIT_H_

#include <cstdint>
#include <utility>

#include "base/memory.h"
#include "kvick/status.h"

namespace kvick {

// The fastest plain read of this machine: the limit of kernels that are bound by memory. Uses the
// widest vectors of the machine, whatever isa the kernels use.
class ReadLimit {
 public:
  // Passes cycle through a buffer of about this size: BytesBeyondCaches() for reads from memory.
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
  uint64_t sink_ = 0;  // depends on every load, so that the compiler keeps them
};

// Read bandwidth in 10^9 bytes per second: the best of some passes over memory.
// Cost: 1 GiB or more, for about a second. Errors: exhausted.
Result<double> MeasureReadBandwidth(int num_threads);

}  // namespace kvick

#endif  // KVICK_MEASURE_READ_LIMIT_H_
