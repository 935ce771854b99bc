#pragma once

/// Microbursts in the queues of a fabric: traffic from a workload file or from a configuration of a
/// campaign, watched at every queue by the snapshot rule (greynic/burst/snapshot.h). Flows are RoCE
/// by destination QP. docs/bursts.md, docs/formats/burst_workload.md.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "greynic/burst/findings.h"
#include "greynic/twin/fabric.h"

namespace greynic::twin {

/// A message that a host writes to another's memory.
struct TimedMessage {
  Time at = 0;
  HostId from = 0, to = 0;
  std::uint32_t stream = 0;  ///< messages of one stream between two hosts share a QP
  std::uint64_t bytes = 0;
};

struct BurstWorkload {
  FabricSpec fabric;
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t send_depth = 1024;  ///< messages of a stream on their way at once
  Time duration = 1e6;
  std::vector<TimedMessage> messages;  ///< in the order of their times
};

inline constexpr std::size_t kMostBurstMessages = 4'000'000;

/// A workload file: its generators have made their messages. `rnic`, unless empty, takes the place
/// of the file's. kBadInput names file and place; so it does where more messages would be made.
[[nodiscard]] Result<BurstWorkload> read_burst_workload(
    const std::string& path, const std::string& rnic = {},
    std::size_t most_messages = kMostBurstMessages);

/// How the queue of a switch port towards a host is used, in slots of 25 us as the counters of
/// "High-Resolution Measurement of Data Center Microbursts" (IMC 2017) have it: a slot is hot when
/// more than half of the link is used, and hot slots follow hot ones `likelihood_ratio` times as
/// often as they follow others. docs/bursts.md says which of these numbers are published.
struct OnOffShape {
  std::string_view name;
  double likelihood_ratio, stay_hot;  ///< stay_hot: chance that a hot slot follows a hot one
  double hot_low, hot_high, cold;     ///< load offered, as shares of the link
  std::uint32_t fan_in;               ///< senders of a hot slot, at most
  std::uint32_t hot_message_bytes, cold_message_bytes;
};
[[nodiscard]] const OnOffShape* on_off_shape(std::string_view name);  ///< web, cache, hadoop

/// One queue: turns what an observer is told when packets leave into the order in which they came
/// and went, and asks the rule.
class QueueWatch final : public PortObserver {
 public:
  using Departed = std::function<void(const PacketRecord& record, bool marked)>;
  QueueWatch(burst::Snapshot& snapshot, std::size_t queue, Departed departed)
      : snapshot_(snapshot), queue_(queue), departed_(std::move(departed)) {}
  void on_packet(const PacketRecord& record) override;
  /// Whoever still waits for a later packet to tell of its stay leaves.
  void finish();

 private:
  void leave();

  burst::Snapshot& snapshot_;
  std::size_t queue_;
  Departed departed_;
  std::deque<PacketRecord> waiting_;
  std::uint64_t depth_ = 0;
};

struct BurstWatchOptions {
  burst::Allowance allowance;  ///< its rate is that of each port
  burst::Mode mode = burst::Mode::kArmedAtEnqueue;
  std::size_t ring_records = 1000;
  std::function<void(double)> progress;  ///< share of the time that has passed
  /// Told of every packet of every queue that is watched.
  QueueWatch::Departed departed;
  std::vector<PortId> ports;  ///< empty: all
};

/// Runs the messages on a fabric and watches its queues.
[[nodiscard]] Result<burst::Findings> watch_bursts(const BurstWorkload& workload,
                                                   const BurstWatchOptions& options);

/// "host 3", "switch 0 port 5".
[[nodiscard]] std::string to_string(const PortId& port);
/// RoCE by destination QP.
[[nodiscard]] burst::FlowKey flow_of(const PacketRecord& record);

}  // namespace greynic::twin
