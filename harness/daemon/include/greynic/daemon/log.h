#pragma once

/// Log lines that nobody outside can forge, and of which nobody outside can make too many.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace greynic::daemon {

/// Text from outside in a form for logs, messages and terminals: printable ASCII stays, every other
/// byte becomes \xNN (the backslash too), and what is longer than `most_bytes` is cut with "...".
[[nodiscard]] std::string plain(std::string_view text, std::size_t most_bytes = 200);

/// Writes whole lines to standard error, which a service manager keeps with their time.
class Log {
 public:
  /// At most `lines` in each `period`; the next line after it tells how many were left out.
  struct Budget {
    std::uint64_t lines = 50;
    std::chrono::milliseconds period{10000};
  };
  explicit Log(std::string name) : Log(std::move(name), Budget{}) {}
  Log(std::string name, Budget budget) : name_(std::move(name)), budget_(budget) {}

  /// One line, whatever stands in `text`; left out and counted when nobody reads the log.
  /// Thread-safe.
  void line(std::string_view text);

 private:
  std::mutex mutex_;
  std::string name_;
  Budget budget_;
  std::chrono::steady_clock::time_point period_begin_{};
  std::uint64_t written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace greynic::daemon
