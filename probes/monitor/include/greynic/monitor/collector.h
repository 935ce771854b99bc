#pragma once

/// Reads many hosts, each at its interval, into a store.
///
/// One thread collects: a timer wheel says which hosts are due, those of high priority go first, and
/// what they give goes through a ring to the thread that processes: it keeps the latest values, and
/// adds them to the store. Hosts behind a wire are asked as credits allow (credits.h), by a few
/// threads that wait for their answers. A commit comes every second; what it acknowledges
/// stays whatever ends the collector.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/monitor/credits.h"
#include "greynic/monitor/host_link.h"
#include "greynic/monitor/hosts_file.h"
#include "greynic/monitor/json_lines.h"
#include "greynic/series/store.h"

namespace greynic::monitor {

struct CollectorOptions {
  std::string store;  ///< directory; empty: samples are kept nowhere
  series::StoreOptions store_options;
  std::chrono::milliseconds commit{1000};
  std::size_t ring_bytes = 64 << 20;
  /// The thread that looks runs before all usual ones (SCHED_FIFO): samples come in time on a host
  /// whose processors are busy.
  bool realtime = false;
  RemoteLinks remote_links;         ///< empty: hosts of this machine only
  std::size_t remote_threads = 16;  ///< answers of other hosts that are waited for at once
  /// Over TCP: 10 Gbit/s, and what the kernels and TLS at both ends add; a job for each thread.
  CreditOptions credits{1.25, 200e3, 2e6, 64, 16};
  std::shared_ptr<JsonLines> lines;  ///< gets each sample; null: nobody does
  /// The run is over when nobody reads the lines any more; else it goes on without them.
  bool ends_with_lines = false;
  /// What ends is kept until take_ended() is called: who looks once a second misses nothing then.
  bool keeps_ended = false;
  /// Lines for a log, safe to print; from two threads.
  std::function<void(std::string_view)> tell;
};

class Collector {
 public:
  struct HostState {
    std::string name;
    bool up = false;
    std::string reason;  ///< why not
    std::chrono::nanoseconds interval{};
    std::int64_t looked_ns = 0;
  };
  struct Counts {
    std::uint64_t looks = 0;
    std::uint64_t samples = 0;       ///< read
    std::uint64_t acknowledged = 0;  ///< in the store
    std::uint64_t lost = 0;          ///< the store was too slow or full
    std::uint64_t late_looks = 0;    ///< by more than an interval
    std::uint64_t gaps = 0;
    std::uint64_t forgotten = 0;  ///< groups that ended, and that take_ended() came too late for
  };
  using Latest = std::function<void(const series::Group& group, std::int64_t time_ns,
                                    std::span<const std::uint64_t> values)>;

  /// Errors of the store as StoreWriter::open. kMissing: this user may not read one of the hosts.
  [[nodiscard]] static Result<std::unique_ptr<Collector>> open(std::vector<HostSpec> hosts,
                                                               const CollectorOptions& options);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Until `stop` is set or the time is over. kRefused: another collector has the store now. kIo:
  /// `ends_with_lines`, and nobody reads them any more.
  /// kMissing: `realtime` needs a right that this user has not.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop,
                                 std::optional<std::chrono::nanoseconds> duration = std::nullopt);

  // While it runs, from any thread.

  [[nodiscard]] std::vector<HostState> hosts() const;
  [[nodiscard]] Counts counts() const;
  /// The last values of each group that still is read.
  void latest(const Latest& visit) const;
  /// The last values of each group that ended since the last call, where `keeps_ended` is set.
  void take_ended(const Latest& visit);

 private:
  struct State;
  class Rounds;
  explicit Collector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::monitor
