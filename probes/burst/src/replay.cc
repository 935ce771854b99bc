#include "greynic/burst/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "greynic/burst/fifo.h"

namespace greynic::burst {

struct Replay::Work {
  Work(const ReplayOptions& given, Marked told)
      : options(given),
        marked(std::move(told)),
        ring(std::max<std::size_t>(given.ring_records, 1)),
        snapshot(queues, ring, given.mode),
        fifo(given.allowance.bits_per_second, given.most_queued),
        analyser(1, [this](const Burst& burst) { keep(burst); }) {
    analyser.keep_profiles(options.keep_profiles);
    queues[0].threshold_bytes = options.allowance.threshold_bytes();
    findings.allowance = options.allowance;
    findings.mode = options.mode;
    findings.queues = {{"capture", options.allowance.bits_per_second, queues[0].threshold_bytes}};
  }

  void leave(const Fifo::Packet& packet, std::uint64_t number, std::uint64_t depth,
             std::uint64_t time) {
    if (!snapshot.on_dequeue(0, packet.bytes, depth, time)) return;
    if (marked) marked(number);
    if (options.mirror_bits_per_second != 0) {
      empty_ring(time);
      snapshot.keep(0, packet.flow, packet.bytes, packet.arrived_ns, time, packet.depth_at_arrival,
                    depth);
    } else if (analyser.add(MarkedPacket{.run = queues[0].run,
                                         .flow = packet.flow,
                                         .bytes = packet.bytes,
                                         .enqueued_ns = packet.arrived_ns,
                                         .dequeued_ns = time,
                                         .depth_at_enqueue = packet.depth_at_arrival,
                                         .depth_at_dequeue = depth})) {
      // It opens a burst: what left before it is known here.
      fifo.history(number, kMostIndirect, [this](const Fifo::Packet& before) {
        analyser.add_indirect(0, before.flow, before.bytes);
      });
    }
  }

  void keep(const Burst& burst) {
    findings.tally.add(burst);
    if (options.found) {
      count();
      options.found(findings, burst);
    } else {
      findings.bursts.push_back(burst);
    }
  }

  void count() {
    findings.packets_seen = queues[0].seen;
    findings.packets_marked = queues[0].marked;
    findings.records_lost = snapshot.ring().lost();
    findings.duration_ns = latest_ns;
  }

  /// One record of the ring to the analyser.
  bool take() {
    CourierRecord record;
    if (!snapshot.ring().pop(record)) return false;
    analyser.add(record);
    return true;
  }

  /// The mirror port sends what it can until `now`.
  void empty_ring(std::uint64_t now) {
    const double each = 84.0 * 8e9 / static_cast<double>(options.mirror_bits_per_second);
    const auto time = static_cast<double>(now);
    while (snapshot.ring().size() > 0 && mirror_free_ns + each <= time) {
      mirror_free_ns += each;
      take();
    }
    if (snapshot.ring().size() == 0) mirror_free_ns = std::max(mirror_free_ns, time);
  }

  static constexpr std::uint64_t kMostIndirect = 1024;
  ReplayOptions options;
  Marked marked;
  std::array<QueueState, 1> queues;
  std::vector<CourierRecord> ring;
  Snapshot snapshot;
  Fifo fifo;
  Findings findings;
  Analyser analyser;
  bool any = false;
  std::uint64_t first_ns = 0, latest_ns = 0;  ///< the latest since the first packet
  double mirror_free_ns = 0.0;
};

Replay::Replay(const ReplayOptions& options, Marked marked)
    : work_(std::make_unique<Work>(options, std::move(marked))) {}
Replay::~Replay() = default;

Result<void> Replay::add(std::uint64_t time_ns, std::uint32_t bytes, const FlowKey& flow) {
  Work& work = *work_;
  if (!work.any) {
    work.first_ns = time_ns;
    work.findings.origin_unix_ns = static_cast<std::int64_t>(time_ns);
  }
  work.any = true;
  const bool behind = time_ns < work.first_ns + work.latest_ns;
  work.findings.clock_ran_back += behind ? 1 : 0;
  const std::uint64_t now = behind ? work.latest_ns : time_ns - work.first_ns;
  work.latest_ns = now;
  work.fifo.drain(now,
                  [&work](const Fifo::Packet& packet, std::uint64_t number, std::uint64_t depth,
                          std::uint64_t time) { work.leave(packet, number, depth, time); });
  Fifo::Packet* const packet = work.fifo.arrive(now, bytes);
  if (packet == nullptr) {
    return fail(ErrorCode::kTooBig,
                fmt::format("more than {} packets wait in the queue: the traffic is faster than "
                            "the rate; give the rate at which the queue really drains",
                            work.options.most_queued));
  }
  packet->flow = flow;
  work.snapshot.on_enqueue(0, bytes, packet->depth_at_arrival, now);
  return {};
}

Findings Replay::finish() {
  Work& work = *work_;
  work.fifo.drain_all([&work](const Fifo::Packet& packet, std::uint64_t number, std::uint64_t depth,
                              std::uint64_t time) { work.leave(packet, number, depth, time); });
  while (work.take()) {
  }
  work.analyser.finish();
  work.count();
  return std::move(work.findings);
}

}  // namespace greynic::burst
