#pragma once

/// An arena in a file, for programs whose metrics are groups of numbers that belong together: each
/// group is one whole structure, the first field of which is the time of writing. Any ArenaReader
/// reads it (map_region in source.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::zero {

struct Metric {
  std::string name;  ///< [a-zA-Z_:][a-zA-Z0-9_:.]*, at most 63 bytes
  std::string unit;  ///< at most 32 bytes; empty: a plain count
};

struct Group {
  std::string name;
  std::vector<Metric> metrics;
};

/// The watched side. Not thread-safe for one group: one writer each.
class RegionWriter {
 public:
  /// Creates (or replaces) the file at `path` and maps it; without a path it is memory of this process. kBadInput for names that are none or
  /// stand twice, kIo when it cannot be made or the disk has no room for it.
  [[nodiscard]] static Result<RegionWriter> create(const std::string& path,
                                                   const std::vector<Group>& groups);
  RegionWriter(RegionWriter&&) noexcept;
  RegionWriter& operator=(RegionWriter&&) noexcept;
  ~RegionWriter();  ///< unmaps; the file stays for readers

  /// Publishes all values of one group, `values` in the order of its metrics. Wait-free.
  void publish(std::size_t group, std::int64_t time_ns, std::span<const double> values);

  /// False once the file was cut under the writer: what is published then reaches nobody.
  [[nodiscard]] bool whole() const;

  /// The mapped bytes, to be registered for remote READ.
  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  struct State;
  explicit RegionWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::zero
