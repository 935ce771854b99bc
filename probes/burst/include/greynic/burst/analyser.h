#pragma once

/// From courier records to bursts: who sent what, who suffered, and which queues belong together.
///
/// A burst is the packets that took part, one after the other, in one queue. It begins when the
/// first of them joins the queue and ends when the last of them leaves. A packet that did not take
/// part, or an empty queue, parts two bursts.
///
///   flows    what took part, by flow; the direct culprits, but for the victims
///   victims  flows with less than half of an equal share of the burst's bytes: they waited in a
///            queue that others filled
///   indirect what left the queue before the burst began and since it was last empty: it kept the
///            queue from draining. Only where all packets are seen, not marked ones alone
///   incast degree   how many senders took part
///
/// docs/bursts.md has examples.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "greynic/burst/snapshot.h"

namespace greynic::burst {

struct FlowShare {
  FlowKey flow;
  std::uint64_t bytes = 0, packets = 0;
};

struct Burst {
  std::uint32_t queue = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t peak_depth_bytes = 0;
  std::uint64_t packets = 0, bytes = 0;
  std::uint32_t incast_degree = 0;
  std::vector<FlowShare> flows;      ///< most bytes first
  std::size_t victims = 0;           ///< the last so many of `flows`
  std::vector<FlowShare> indirect;   ///< most bytes first
  std::vector<std::size_t> related;  ///< bursts of other queues, by their place; see relate()

  /// Bytes of it that waited, by slices of its time: of the first flows of `flows`, then of all
  /// others. Only of the deepest bursts.
  std::vector<std::vector<std::uint32_t>> profile;
  static constexpr std::size_t kProfileFlows = 5, kProfileBins = 100;

  [[nodiscard]] double share(const FlowShare& flow) const {
    return bytes == 0 ? 0.0 : static_cast<double>(flow.bytes) / static_cast<double>(bytes);
  }
  [[nodiscard]] std::span<const FlowShare> victim_flows() const {
    return std::span(flows).last(victims);
  }
  [[nodiscard]] std::uint64_t victim_packets() const;
};

/// A marked packet as its queue saw it. A courier record says the same in fewer bytes.
struct MarkedPacket {
  std::size_t queue = 0;
  std::uint8_t run = 0;  ///< of CourierRecord::run() or of QueueState: what tells bursts apart
  const FlowKey& flow;
  std::uint64_t bytes = 0;
  std::uint64_t enqueued_ns = 0, dequeued_ns = 0;
  std::uint64_t depth_at_enqueue = 0;  ///< bytes, its own among them
  std::uint64_t depth_at_dequeue = 0;  ///< bytes that stay
};

/// Bytes and packets by flow; keeps its memory when it is cleared.
class FlowTable {
 public:
  void add(const FlowKey& flow, std::uint64_t bytes);
  void clear();
  [[nodiscard]] std::size_t flows() const { return used_.size(); }
  /// Most bytes first, then by name.
  void sort_into(std::vector<FlowShare>& all);

 private:
  void grow();
  std::vector<FlowShare> slots_;     ///< a power of two of them
  std::size_t mask_ = 0;             ///< their number less one
  std::vector<std::uint32_t> used_;  ///< places of the slots in use, in order of arrival
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order_;
  std::uint32_t last_ = 0;  ///< most packets are of the flow of the one before
};

class Analyser {
 public:
  /// Told each burst when it has ended; what it was told does not outlive the call.
  using Found = std::function<void(const Burst&)>;
  static constexpr std::size_t kMostProfiles = 12;

  Analyser(std::size_t queue_count, Found found) : open_(queue_count), found_(std::move(found)) {}

  /// Only pictures need profiles (Burst::profile).
  void keep_profiles(bool keep) { keeps_profiles_ = keep; }
  /// The next packet, in the order in which packets leave their queue. True: it opens a burst.
  bool add(const MarkedPacket& packet);
  bool add(const CourierRecord& record);
  /// A packet that left before the burst that was opened just now.
  void add_indirect(std::size_t queue, const FlowKey& flow, std::uint64_t bytes) {
    open_[queue].indirect.add(flow, bytes);
  }
  /// Ends the bursts whose last packet left before `now_ns`: nothing more is to come of them.
  void finish(std::uint64_t now_ns = UINT64_MAX);

 private:
  struct Open {
    bool is_open = false;
    std::uint8_t run = 0;
    Burst burst;
    FlowTable flows, indirect;
    std::vector<CourierRecord> packets;  ///< the first of them, for the profile
  };
  void close(Open& open);
  void add_profile(const Open& open, Burst& burst);

  std::vector<Open> open_;
  Found found_;
  bool keeps_profiles_ = true;
  std::vector<std::uint64_t> deepest_;  ///< peaks of bursts with a profile, a heap
  FlowTable senders_;                   ///< of one burst
};

/// Fills `related`: bursts of other queues that overlap in time, give or take `slack_ns`, and share
/// a flow that is no victim in either: one cause, seen along its path.
void relate(std::span<Burst> bursts, std::uint64_t slack_ns);

}  // namespace greynic::burst
