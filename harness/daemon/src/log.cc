#include "greynic/daemon/log.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

namespace greynic::daemon {

std::string plain(std::string_view text, std::size_t most_bytes) {
  std::string made;
  for (const char c : text) {
    if (made.size() >= most_bytes) return made + "...";
    if (c >= ' ' && c <= '~' && c != '\\') {
      made += c;
    } else {
      made += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return made;
}

void Log::line(std::string_view text) {
  constexpr std::size_t kLongestLine = 2000;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::string written;
  if (now - period_begin_ >= budget_.period) {
    if (left_out_ > 0) written = fmt::format("{}: {} lines were left out\n", name_, left_out_);
    period_begin_ = now;
    written_ = left_out_ = 0;
  }
  // A reader that has stopped reading must not stop who writes: a pipe that can be written takes a
  // whole line.
  pollfd log{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (++written_ > budget_.lines || poll(&log, 1, 0) == 0) {
    ++left_out_;
    return;
  }
  written += fmt::format("{}: {}\n", name_, plain(text, kLongestLine));
  // One write, so that lines of two threads or processes do not mix. A log that cannot be written
  // stops nothing.
  (void)!::write(STDERR_FILENO, written.data(), written.size());
}

}  // namespace greynic::daemon
