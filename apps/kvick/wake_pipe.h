#ifndef KVICK_APPS_KVICK_WAKE_PIPE_H_
#define KVICK_APPS_KVICK_WAKE_PIPE_H_

#include "descriptor.h"
#include "kvick/status.h"

namespace kvick::cli {

// Wakes a thread that waits in poll(): from other threads, and from signals.
class WakePipe {
 public:
  // Errors: io.
  static Result<WakePipe> Create();

  int fd() const { return read_.fd(); }  // readable: awake
  void Wake() const;                     // from anywhere
  void Clear() const;                    // until the next Wake

 private:
  WakePipe(Descriptor read, Descriptor write) : read_(std::move(read)), write_(std::move(write)) {}

  Descriptor read_;
  Descriptor write_;
};

// From now on the first Ctrl-C or SIGTERM wakes `pipe`, which must live as long as the process, and
// does no more; a second one ends the process. What was ignored stays ignored.
void CatchStopSignals(const WakePipe& pipe);
// The number of the signal that was caught; 0: none.
int CaughtSignal();

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_WAKE_PIPE_H_
