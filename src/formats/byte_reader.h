#ifndef KVICK_FORMATS_BYTE_READER_H_
#define KVICK_FORMATS_BYTE_READER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/check.h"
#include "kvick/status.h"

namespace kvick {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

// A cursor over bytes from outside that never passes their end. Little-endian, any alignment.
// `source` names the bytes in messages and must outlive the reader, as must the bytes.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view source)
      : bytes_(bytes), source_(source) {}

  std::string_view source() const { return source_; }
  uint64_t position() const { return position_; }
  uint64_t num_left() const { return bytes_.size() - position_; }

  // The next `num_bytes`, where they lie. `what` names them in the message.
  Result<std::span<const std::byte>> Take(uint64_t num_bytes, std::string_view what) {
    if (num_bytes > num_left()) {
      return Fail(ErrorCode::kCorrupt,
                  "{}: {} at offset {}: expected {} bytes, got the {} that are left", source_, what,
                  position_, num_bytes, num_left());
    }
    const auto taken = bytes_.subspan(position_, num_bytes);
    position_ += num_bytes;
    return taken;
  }

  template <class T>
  Result<T> Read(std::string_view what) {
    KVICK_ASSIGN_OR_RETURN(const auto bytes, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view source_;
  uint64_t position_ = 0;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_BYTE_READER_H_
