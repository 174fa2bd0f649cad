#include "wake_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/check.h"

namespace kvick::cli {
namespace {

// Of the signal handler, which may touch nothing else.
std::atomic<const WakePipe*> woken_by_signals = nullptr;
std::atomic<int> caught_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  const int saved = errno;
  caught_signal = signal;
  woken_by_signals.load()->Wake();
  errno = saved;
}

}  // namespace

Result<WakePipe> WakePipe::Create() {
  int ends[2];
  if (pipe(ends) != 0)
    return Fail(ErrorCode::kIo, "cannot create a pipe: {}", std::strerror(errno));
  for (const int end : ends) {
    fcntl(end, F_SETFL, O_NONBLOCK);  // a full pipe wakes as well
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  return WakePipe(Descriptor(ends[0]), Descriptor(ends[1]));
}

void WakePipe::Wake() const {
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = write(write_.fd(), &byte, 1);
}

void WakePipe::Clear() const {
  char bytes[256];
  while (read(read_.fd(), bytes, sizeof(bytes)) == sizeof(bytes)) {
  }
}

void CatchStopSignals(const WakePipe& pipe) {
  woken_by_signals = &pipe;
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_IGN) continue;
    now = {};
    now.sa_handler = OnSignal;
    now.sa_flags = SA_RESETHAND;
    sigaction(signal, &now, nullptr);
  }
}

int CaughtSignal() { return caught_signal; }

}  // namespace kvick::cli
