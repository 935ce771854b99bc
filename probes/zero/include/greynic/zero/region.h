#pragma once

/// Metrics in a memory region that a monitor reads one-sided: the watched host only writes its own
/// memory and runs no code for the reader. All that a reader needs is a way to copy bytes, which a
/// mapped file and an RDMA READ both are. The region describes itself.
///
/// Layout (all numbers little endian, docs/formats/region.md): a header line, a table of
/// descriptors (group and metric names, units), then the groups. A group is a run of 64-byte lines.
/// Each line begins with the group's version and holds seven 8-byte values; the first value of the
/// group is the time of writing. A writer makes all versions odd, writes, and makes them even
/// again. So a copy in which every line has the same even version is a consistent snapshot,
/// provided that each 64-byte line is copied whole. PCIe READs of a cache line do that, and so does
/// the mapped reader below.
///
/// Not promised: a reader that is much slower than the writer may have to give up (kRefused after
/// the tries allowed). No history is kept; each write replaces the last.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::zero {

struct Metric {
  std::string name;  ///< at most 47 bytes, e.g. "rx_steering_pipe0_occupied"
  std::string unit;  ///< at most 15 bytes; empty: a plain count
};

struct Group {
  std::string name;  ///< at most 47 bytes
  std::vector<Metric> metrics;
};

/// The watched side. Not thread-safe for one group: one writer each.
class RegionWriter {
 public:
  /// Creates (or replaces) the file at `path` and maps it. kBadInput for names too long or twice,
  /// kIo when it cannot be made or the disk has no room for it.
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

/// Copies bytes out of a region without its owner's help.
class OneSided {
 public:
  virtual ~OneSided() = default;
  /// Fills `out` from `offset`; both are multiples of 64. Each 64-byte line must be copied whole.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

/// A region file of this machine, mapped read-only. kBadInput when it is no region. A file that
/// shrinks while it is read gives kIo.
[[nodiscard]] Result<std::unique_ptr<OneSided>> map_region(const std::string& path);

struct Snapshot {
  std::uint64_t version = 0;  ///< grows by 2 with each write; 0: never written
  std::int64_t time_ns = 0;
  std::vector<double> values;  ///< in the order of the group's metrics
};

class RegionReader {
 public:
  /// Reads header and table. kBadInput when magic, version or sizes are wrong.
  [[nodiscard]] static Result<RegionReader> discover(std::unique_ptr<OneSided> source);

  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }

  /// One consistent snapshot; one read when the writer is not in the middle of a write, and at most
  /// `tries` of them.
  [[nodiscard]] Result<Snapshot> read(std::size_t group, int tries = 1000);

  /// Reads made so far that met a writer and had to be repeated.
  [[nodiscard]] std::uint64_t torn_reads() const { return torn_reads_; }

 private:
  RegionReader() = default;
  std::unique_ptr<OneSided> source_;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::byte> buffer_;
  std::uint64_t torn_reads_ = 0;
};

}  // namespace greynic::zero
