#ifndef KVICK_APPS_KVICK_DESCRIPTOR_H_
#define KVICK_APPS_KVICK_DESCRIPTOR_H_

#include <string>
#include <utility>

#include "kvick/status.h"

namespace kvick::cli {

// An open file, pipe or device. Move-only; closed on destruction, but for those that the process
// was given.
class Descriptor {
 public:
  // `flags` as of open(2). Errors: io.
  static Result<Descriptor> Open(const std::string& path, int flags);

  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_DESCRIPTOR_H_
