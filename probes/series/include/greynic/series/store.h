#pragma once

/// A store of samples in one directory: a log of what came last, and segments of what came before.
///
/// What commit() has returned for is on the disk: whatever ends the writer, it is read again. The
/// log is one file, synced at each commit; when it has grown, its samples are packed by column into
/// a segment, which takes its name when it is whole, and the log goes. Segments are also made of
/// means over 10 s and 10 min (tiers), so that old samples may go and their course stays.
/// docs/formats/series.md.
///
/// A store has one writer, who holds a lease. A second writer takes it over when the first has gone
/// or has not renewed it in time; who lost its lease writes no more.
///
/// Not thread-safe. Readers may read while a writer writes.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::series {

/// One column, or several of one name: an array, or the words of a histogram.
struct Field {
  std::string name, labels, unit, help;
  std::uint8_t kind = 1;  ///< 1 counter, 2 gauge, 3 histogram
  bool floating = false;  ///< values are doubles
  bool is_signed = false;
  std::uint32_t count = 1;
  std::uint32_t parameter = 0;  ///< of a histogram
  [[nodiscard]] bool operator==(const Field&) const = default;
};

/// Series that are sampled together: one row of one arena.
struct Group {
  std::string host;
  std::string source;  ///< the program, or what else
  std::uint8_t metric_class = 0;
  std::vector<Field> fields;
  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] bool operator==(const Group&) const = default;
};

/// A time in which a host was not read, and why.
struct Gap {
  std::string host;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string reason;
};

struct StoreOptions {
  std::size_t most_waiting_samples = 8 << 20;  ///< in the log; then a segment is made
  std::chrono::seconds longest_wait{300};      ///< and after this time
  std::chrono::milliseconds lease{3000};
  std::chrono::seconds keep_raw{0};  ///< 0: for good
  std::chrono::seconds keep_tiers{0};
};

class StoreWriter {
 public:
  /// Makes the directory when it is not there, and ends what a writer before left unfinished. kIo
  /// when another writer has it, or it cannot be written; kBadInput when it is no store.
  [[nodiscard]] static Result<std::unique_ptr<StoreWriter>> open(const std::string& directory,
                                                                 const StoreOptions& options = {});
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  /// A number for the group, the same for an equal one, as long as generation() stays: segments
  /// begin with no groups.
  std::uint64_t group(const Group& group);
  [[nodiscard]] std::uint64_t generation() const;
  /// `values`: one for each column, doubles as their bits.
  void add(std::uint64_t group, std::int64_t time_ns, std::span<const std::uint64_t> values);
  void add(const Gap& gap);
  /// Syncs what was added, and then it is acknowledged. kIo when the disk is full or failing: what
  /// was added since the last commit is dropped, and the store goes on; kRefused when another
  /// writer has taken over.
  [[nodiscard]] Result<void> commit();
  /// Commits, and packs the log into a segment.
  [[nodiscard]] Result<void> seal();

  struct Counts {
    std::uint64_t samples = 0;        ///< acknowledged
    std::uint64_t dropped = 0;        ///< that a full disk cost
    std::uint64_t segment_bytes = 0;  ///< of segments made by this writer, without tiers
    std::uint64_t sealed_samples = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  explicit StoreWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Waits until the store has no writer, or one that does not renew its lease. False: `stop` came.
[[nodiscard]] Result<bool> wait_for_lease(const std::string& directory,
                                          std::chrono::milliseconds lease,
                                          const std::function<bool()>& stop);

/// Samples of one group: times, and columns one after the other.
struct Chunk {
  const Group* group = nullptr;
  std::vector<std::int64_t> times_ns;
  std::vector<std::vector<std::uint64_t>> columns;
};

/// A bucket of a tier: of each column its least, greatest and last value, and the sum as a double.
struct TierChunk {
  const Group* group = nullptr;
  std::int64_t step_ns = 0;
  std::vector<std::int64_t> begins_ns;
  std::vector<std::uint64_t> counts;
  struct Column {
    std::vector<std::uint64_t> least, greatest, last, sum;
  };
  std::vector<Column> columns;
};

struct Visitor {
  std::function<void(const Chunk&)> chunk;
  std::function<void(const TierChunk&)> tier_chunk;
  std::function<void(const Gap&)> gap;
};

inline constexpr std::int64_t kTierSteps[] = {10'000'000'000, 600'000'000'000};

/// Reads a whole store, file by file. A log's torn end is left out; anything else that is damaged
/// is kBadInput, with file and place. Tier `step_ns` 0: the samples themselves.
[[nodiscard]] Result<void> read_store(const std::string& directory, std::int64_t step_ns,
                                      const Visitor& visitor);

}  // namespace greynic::series
