#pragma once

/// Each sample as a line of JSON, for scripts: into a file, which grows, or to stdout.
///
/// A thread of its own writes. So a reader that is slow, or a disk that is full, holds no collector
/// up: lines that find no room meanwhile are left out, whole ones, and counted.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "greynic/core/result.h"
#include "greynic/series/store.h"

namespace greynic::monitor {

struct JsonLinesOptions {
  std::string path;                   ///< "-": stdout
  std::size_t most_bytes = 64 << 20;  ///< that wait to be written
};

class JsonLines {
 public:
  /// kIo: the file cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<JsonLines>> open(const JsonLinesOptions& options);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // By one thread.

  /// A line for each series of the group: docs/zero.md. `number` is that of the group.
  void sample(std::uint64_t number, const series::Group& group, std::int64_t time_ns,
              std::span<const std::uint64_t> values);
  /// No more samples of that group come.
  void ended(std::uint64_t number);
  void gap(const series::Gap& gap);
  /// Writes what waits, no longer than this; what comes later is left out.
  void finish(std::chrono::milliseconds patience);

  // From any thread.

  /// Nobody reads any more (a closed pipe): what comes is left out.
  [[nodiscard]] bool closed() const;
  /// kIo: lines were lost as they could not be written; a reader that hangs up is no such failure.
  [[nodiscard]] Result<void> complete() const;
  struct Counts {
    std::uint64_t written = 0, lost = 0;  ///< lines
    std::string last_failure;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  explicit JsonLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::monitor
