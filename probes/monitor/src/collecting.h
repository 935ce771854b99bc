#pragma once

/// The collecting side: turns readings into records of the ring. Several threads may bring them.

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "greynic/monitor/record_ring.h"
#include "greynic/series/store.h"
#include "watched_host.h"

namespace greynic::monitor {

/// What a record begins with.
enum class RecordKind : std::uint64_t {
  kGroup = 1,   ///< number, series::Group* that the taker owns
  kSample = 2,  ///< number, time, values
  kEnded = 3,   ///< number: no more samples come
  kGap = 4,     ///< series::Gap* that the taker owns
};

class Collecting final : public Taker {
 public:
  struct Counts {
    std::uint64_t samples = 0, lost = 0, gaps = 0;
  };
  Collecting(RecordRing& ring, std::function<void(std::string_view)> tell)
      : ring_(ring), tell_(std::move(tell)) {}

  void readings(const HostSpec& host, std::uint64_t arena, const zero_header& header,
                std::span<const zero::Reading> readings, std::int64_t time_ns) override;
  void ended(std::uint64_t arena) override;
  void gap(const HostSpec& host, std::int64_t begin_ns, std::int64_t end_ns,
           const std::string& reason) override;
  void tell(const std::string& line) override {
    if (tell_) tell_(line);
  }
  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  /// A run of values that are copied as they are, or turned into 64 bits one by one.
  struct Run {
    std::uint32_t offset = 0, count = 0;
    const zero::Field* field = nullptr;  ///< null: words
  };
  struct Plan {
    std::shared_ptr<const zero::Schema> schema;  ///< keeps the fields alive
    std::vector<Run> runs;
    std::size_t width = 0;
  };
  struct Known {
    std::uint64_t number = 0;
    Plan plan;
    std::uint64_t round = 0;
  };
  /// Processes of one name on a host. Each is a program of its own: the first has the bare name, the
  /// others NAME/2, NAME/3. A place that gets free is taken again, so a program that is started anew
  /// goes on with its series.
  struct Place {
    std::uint64_t pid = 0, start = 0;
    std::size_t arenas = 0;
  };
  using Places = std::map<std::pair<std::string, std::string>, std::vector<Place>>;
  struct OfArena {
    std::unordered_map<std::uint64_t, Known> rows;  ///< by instance
    std::uint64_t round = 0;
    std::string program;
    Places::iterator places;
    std::size_t place = 0;
  };

  static Plan plan_of(const zero::Row& row);
  void take_place(OfArena& arena, const HostSpec& host, const zero_header& header);
  void leave_place(OfArena& arena);
  Known* known_row(OfArena& arena, const HostSpec& host, const zero_header& header,
                   const zero::Row& row);
  bool put(RecordKind kind, std::uint64_t first, std::uint64_t second);
  void forget_old(OfArena& arena);
  void tell_ended();

  RecordRing& ring_;
  std::function<void(std::string_view)> tell_;
  mutable std::mutex mutex_;  ///< of what follows, and of who puts into the ring
  Places programs_;           ///< by host and name
  std::unordered_map<std::uint64_t, OfArena> arenas_;
  std::vector<std::uint64_t> ended_;  ///< numbers that are still to be told
  std::uint64_t last_number_ = 0;
  Counts counts_;
};

}  // namespace greynic::monitor
