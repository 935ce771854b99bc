#pragma once

/// What all child processes share: pipes, and an end in order.

#include <sys/types.h>

#include <chrono>

#include "greynic/core/result.h"

namespace greynic::os {

/// Both ends are closed on exec and when this goes; -1 once closed.
struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();
  bool open();
  /// A socket pair, because a write to it can be told not to raise SIGPIPE when the reader is gone.
  bool open_socket();
  void close_read();
  void close_write();
};

/// kIo with errno's words.
[[nodiscard]] tl::unexpected<Error> no_pipe();

/// In a child before it becomes another program: what greynic ignores or blocks for its own end is
/// not for others, who would have to inherit it. Async-signal-safe.
void take_usual_signals();

/// Whether the child ended within `patience`; its wait status then goes to `status`.
[[nodiscard]] bool ends_within(pid_t child, std::chrono::milliseconds patience, int& status);

/// SIGTERM, and SIGKILL after `patience`; `whom` is the child or, negative, its group. Its wait
/// status.
int end_process(pid_t child, pid_t whom, std::chrono::milliseconds patience);

}  // namespace greynic::os
