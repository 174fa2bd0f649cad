#include "descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "terminal.h"

namespace kvick::cli {

Result<Descriptor> Descriptor::Open(const std::string& path, int flags) {
  constexpr int kMode = 0666;
  const int fd = open(path.c_str(), flags | O_CLOEXEC, kMode);
  if (fd >= 0) return Descriptor(fd);
  return Fail(ErrorCode::kIo, "{}: cannot open: {}", ShownName(path), std::strerror(errno));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ > STDERR_FILENO) close(fd_);
}

}  // namespace kvick::cli
