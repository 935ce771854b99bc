#pragma once

/// The simulator: two hosts, or several that send to one, their RNICs and the wire, packet by
/// packet in virtual time.
///
/// A packet is handled once, when its processing unit has finished it: all stages behind it are
/// closed forms that depend only on earlier packets. What has a decision in it (a WQE arrives, a
/// message is delivered, a thread posts) is an event. So the cost of a run grows with packets and
/// messages, and neither with QPs nor with masks.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/effects.h"
#include "engine/workload.h"
#include "greynic/core/histogram.h"
#include "greynic/statistics/random.h"
#include "greynic/statistics/steady_state.h"
#include "parts/congestion.h"
#include "parts/event_queue.h"
#include "parts/fifo.h"
#include "parts/host.h"
#include "parts/nic.h"
#include "parts/pcie.h"
#include "parts/unit_queue.h"

namespace greynic::twin {

struct RunLimits {
  Time duration = 1e9;                   ///< virtual ns
  std::uint64_t most_packets = 2000000;  ///< data packets
  double target_error = 0.001;           ///< stop when the mean is this sure (relative)
  bool whole_duration = false;           ///< do not stop before the duration is over
};

/// Payload moved, from packet time stamps after the warm-up was cut.
struct BandwidthResult {
  double gbps = 0, gbps_error = 0;
  double packets_per_second = 0, packets_error = 0;
  double messages_per_second = 0, messages_error = 0;
  statistics::SteadyEstimate steady;
  double warmup_share = 0;
  double pause_share = 0;  ///< of the time, in which a sender was told to pause
  double loss_share = 0;   ///< of messages
  Time virtual_time = 0;
  std::uint64_t packets = 0;
};

struct LatencyResult {
  LatencyHistogram histogram;
  double mean_ns = 0, mean_error_ns = 0;
  statistics::SteadyEstimate steady;
};

/// One run; use an object once.
class Engine {
 public:
  Engine(const Parameters& parameters, const Workload& workload, const Effects& effects,
         std::uint64_t seed);

  /// Keeps queues full, posts rounds, or posts what is due (offered_rate), until the rate is known
  /// well enough or time is up.
  [[nodiscard]] BandwidthResult run_bandwidth(const RunLimits& limits);
  /// One request at a time on one QP: SEND and WRITE are answered by the peer, READ and ATOMIC by
  /// its RNIC. Half a round trip each.
  [[nodiscard]] LatencyResult run_latency(const RunLimits& limits, std::uint64_t most_rounds);

  /// Traffic flows, and then the server's RNIC answers nothing for `outage_ns`; over when every QP
  /// has heard from it again or failed.
  void run_outage(Time outage_ns);

  /// Of the run that is over: half round trips, or in an open loop the time from when a message was
  /// due to its completion.
  [[nodiscard]] LatencyResult latency() const;
  /// Of the client (0), the server (1), and what other clients there are.
  [[nodiscard]] const NicCounters& counters(std::size_t side) const { return nics_[side].counters; }
  [[nodiscard]] std::vector<NicCounters> all_counters() const;
  /// Messages that a QP has sent whole; each client has as many QPs, one client's after another's.
  [[nodiscard]] std::uint32_t messages_sent(std::uint32_t qp) const {
    return streams_[static_cast<std::size_t>(qp) << lane_bits_].sent;
  }
  /// Times that the switch told a client to pause.
  [[nodiscard]] std::uint64_t port_pause_count() const { return port_.pause_count(); }
  /// Times that the server told the client to pause.
  [[nodiscard]] std::uint64_t pause_count() const { return nics_[1].receive_buffer.pause_count(); }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t data_packets() const { return data_packets_; }
  /// Called between events when virtual time passes each multiple of `period`.
  void on_period(Time period, std::function<void(Time)> call);
  /// The first law of conservation that does not hold, and by how much; empty: all hold. Costs as
  /// much as there are streams and events. Debug builds stop at a broken one
  /// (engine_conservation.cc).
  [[nodiscard]] std::string broken_law() const;
  /// Bytes held for QPs and threads: for the memory claim of docs/twin/engine.md.
  [[nodiscard]] std::size_t bytes_per_qp() const;

 private:
  friend struct EngineLeak;  ///< plants leaks: tests/twin/conservation_test.cc
  static constexpr std::size_t kPacketsPerStamp = 64;
  static constexpr std::uint32_t kServer = 1;  ///< among the RNICs; all others are clients
  static constexpr Time kPcieJitterNs = 20;
  static constexpr std::uint8_t kTurnPackets = 4;  ///< a unit sends of a QP, then the next QP
  enum Kind : std::uint8_t {
    kThreadStep,
    kDoorbell,
    kWqeArrives,
    kPayloadWanted,
    kEngineStep,
    kDataReady,
    kDelivered,
    kCompleted,
    kPeerAnswers,
    kUnanswered,
    kDuplicate,
    kGapSeen,
    kGoBack,
    kTimeout,
    kAnnounced,
    kNotReady,
    kRested,
    kMarked,
    kNotified,
    kReleased,
    kDeregister,
  };
  /// One direction of one QP on one RNIC: what its processing unit works on. One line of the CPU's
  /// cache, so that a turn on one of very many QPs costs one miss, and that one is prefetched.
  struct alignas(64) Stream {
    std::uint32_t next = kNone;       ///< in its unit's ring
    std::uint32_t next_free = kNone;  ///< in its thread's list of streams with a free slot
    std::uint32_t ready = 0;          ///< messages whose data is at hand
    std::uint32_t posted = 0, fetched = 0, handled = 0, sent = 0, done = 0, credited = 0;
    std::uint32_t receives = 0;  ///< receive WQEs at the other end
    std::uint32_t thread = kNone;
    std::uint32_t packets_left = 0;  ///< of the message that is being sent
    // No bit fields: what was written as part of a word takes the CPU long to read back as a whole.
    std::uint8_t nic = 0;   ///< where it is sent
    std::uint8_t to = 1;    ///< where it is received
    bool responds = false;  ///< sends what the other RNIC asked for
    bool in_ring = false;
    bool in_free_list = false;
    bool resting = false;  ///< nothing is sent: its QP waits for a timer, or has failed
    Time not_before = 0;   ///< its next turn: until then QP context or payload is being fetched
  };
  static_assert(sizeof(Stream) == 64);

  struct Freight {  ///< what one data packet carries, and takes of the wire and both PCIe links
    std::uint32_t payload = 0;
    Time wire_ns = 0, read_ns = 0, write_ns = 0;
    Time stored_ns = 0;  ///< in stages that take it in whole before they pass it on
  };
  struct Shape {  ///< of one message of the cycle
    std::uint64_t bytes = 0;
    std::uint32_t packets = 1;
    Freight first, middle, last;
    std::uint32_t reads = 1;  ///< of its payload, before its first burst can be sent
    bool inlined = false;
    /// A packet's payload crosses PCIe, and the packet is whole on chip.
    [[nodiscard]] Time first_read_ns() const { return packets > 1 ? first.read_ns : last.read_ns; }
  };
  struct Crossing {  ///< of one packet through one eSwitch
    Time latency = 0;
    double hops = 0;
    Time occupancy = 0;  ///< of the direction's pipes
  };
  struct Steering {  ///< what one direction of one eSwitch costs
    const GroupWalk* walk = nullptr;
    Time per_group_ns = 0;
    bool varies = false;  ///< not every packet walks as far; else `current` holds for all
    Crossing current;
  };
  struct Passage {  ///< one direction of the wire
    Steering encap, decap;
  };
  /// kAnnounced: written, and the first of a message that needs a receive WQE.
  enum class Fate : std::uint8_t { kWritten, kAnnounced, kCorrupted, kOutOfSequence };
  struct Arrival {
    Time wire_end, at_memory;
    Fate fate;
  };
  /// Of a stream, kept from the start where packets can be lost, else from the first time that a
  /// receiver is not ready (engine_recovery.cc).
  struct Recovery {
    bool behind_gap = false;         ///< a packet is missing: what follows is thrown away
    bool nak_sent = false;           ///< and the sender will hear of it
    bool broken = false;             ///< a packet of the message in work is missing (UC)
    std::uint32_t message = 0;       ///< where to go back to
    std::uint32_t packets_left = 0;  ///< of that message, the missing packet among them
    std::uint32_t gap = 0;           ///< number of the gap: what concerns an older one is void
    std::uint64_t sent_behind = 0;   ///< packets sent since
    std::uint64_t bytes_behind = 0;
    std::uint8_t tries = 0;            ///< to get the same packet there again
    std::uint8_t rnr_tries = 0;        ///< to find a receive WQE for the same message
    bool received = false;             ///< the message that comes in has its receive WQE
    bool stopped = false;              ///< its QP has failed
    bool flushes = false;              ///< and what is posted on it completes in error
    bool unheard = false;              ///< rests for its timer, while the receiver is down
    std::uint32_t delivered = 0;       ///< SENDs that found their receive WQE, whole
    std::uint32_t acknowledged = 0;    ///< messages that the sender knows to be there
    std::uint32_t unacknowledged = 0;  ///< that are there, but the acknowledgement was lost
    std::uint32_t answers = 0;         ///< that the sender has heard
    std::uint32_t refusals = 0;  ///< what was on its way at an older one is void when it arrives
  };
  /// Why a QP fails.
  enum class Exhausted : std::uint8_t { kRetries, kRnrRetries };

  /// Of a stream, kept only where DCQCN is on (engine_congestion.cc).
  struct Pace {
    RateLimiter limiter;
    Time next_cnp = 0;  ///< the receiver sends none before
    bool held = false;  ///< has to wait before it joins its unit's ring
  };

  // engine.cc: set-up and the loop.
  void lay_out_shapes(bool ping_pong);
  void lay_out_streams();
  void lay_out_steering();
  void lay_out_threads();
  void step();
  void handle(const Event& event);
  [[nodiscard]] bool over() const { return events_.empty() && units_.time() >= kNever; }
  [[nodiscard]] bool enough(const RunLimits& limits) {
    return (now_ >= limits.duration || stamps_.size() >= next_check_) && is_enough(limits);
  }
  [[nodiscard]] bool is_enough(const RunLimits& limits);

  // engine_requests.cc: from the thread to the processing unit, and completions back.
  void thread_steps(std::uint32_t thread, Time t);
  void post(std::uint32_t stream, std::uint32_t count, Time t);
  void doorbell_arrives(std::uint32_t stream, std::uint32_t count, Time t);
  void wqe_arrives(std::uint32_t stream);
  void payload_wanted(std::uint32_t stream, std::uint32_t message, Time t);
  Time begin_read(Nic& nic, Time t, Time latency);
  Time begin_read(Nic& nic, Time t) { return begin_read(nic, t, p_.pcie_read_latency_ns); }
  Time begin_payload(Nic& nic, const Shape& shape, Time t);
  /// From the grant of the last read of a payload until its first packet is whole on chip.
  [[nodiscard]] Time payload_latency(const Nic& nic, const Shape& shape) {
    return read_latency(nic) + shape.first_read_ns() + jitter(kPcieJitterNs);
  }
  [[nodiscard]] Time read_latency(const Nic& nic) const {
    return p_.pcie_read_latency_ns + (number_of(nic) != kServer ? far_memory_ns_ : 0.0);
  }
  Time recall_wqe(std::uint32_t stream, Time t);
  void engine_steps(std::uint8_t nic, Time t);
  void delivered(std::uint32_t stream, std::uint32_t number, Time t);
  void complete(std::uint32_t stream, std::uint32_t count, Time t);
  void complete_one(std::uint32_t stream, Time t);
  void credit(std::uint32_t stream, std::uint32_t count, Time t);
  void free_slot_in(std::uint32_t stream);
  void answer(std::uint32_t stream, Time t);
  [[nodiscard]] bool take_receive(std::uint32_t stream, Time t);
  void put_receive_back(std::uint32_t stream, Time t);

  // engine_arrivals.cc: messages that are due whether or not others are done.
  void lay_out_arrivals();
  [[nodiscard]] std::uint32_t take_due(Thread& thread, std::uint32_t stream, std::uint32_t most,
                                       Time t);
  [[nodiscard]] bool knows_latency() const;

  // engine_memory.cc: control verbs that take translations away.
  void lay_out_regions();
  void deregister(std::uint8_t nic, Time t);

  // engine_answers.cc: what the receiver says, and what of it is lost.
  [[nodiscard]] Time send_word(std::uint8_t from, std::uint8_t to, double bytes, Time t);
  void acknowledge(std::uint32_t stream, std::uint32_t count, Time t);
  void watch_for_answer(std::uint32_t stream, Time t);
  void unanswered(std::uint32_t stream, std::uint32_t answers, Time t);

  // engine_recovery.cc: packets that are lost or refused, and sent again.
  [[nodiscard]] Fate fate_of_packet(std::uint32_t stream, Time t);
  void open_gap(std::uint32_t stream, std::uint32_t packets_left, Time t);
  void watch_gap(std::uint32_t stream, Time t);
  void tell_of_gap(std::uint32_t stream, Time t);
  void settle(std::uint32_t stream, Fate fate, const Freight& freight, Time t);
  void gap_seen(std::uint32_t stream, std::uint32_t gap, Time t);
  void go_back(std::uint32_t stream, std::uint32_t gap, bool timed_out, Time t);
  [[nodiscard]] bool message_survives(std::uint32_t stream);
  void rewind(std::uint32_t stream);
  void lay_out_recoveries();
  void refuse(std::uint32_t stream, Time t);
  [[nodiscard]] bool announces(const Stream& s) const;
  void announced(std::uint32_t stream, std::uint32_t refusals, Time t);
  [[nodiscard]] bool is_void(std::uint32_t stream, std::uint32_t refusals) const;
  [[nodiscard]] bool find_receive(std::uint32_t stream, Time t);
  void not_ready(std::uint32_t stream, std::uint32_t gap, Time t);
  void rested(std::uint32_t stream, Time t);
  void fail_qp(std::uint32_t stream, Exhausted what);
  void hear_again(std::uint32_t stream);

  // engine_conservation.cc: what must neither get lost nor come from nowhere.
  struct Laws;
  struct Ledger;
  struct Sent;
  [[nodiscard]] Ledger count_all() const;
  [[nodiscard]] Sent count_sent() const;
  void check_stream(std::uint32_t stream, const Ledger& ledger, Laws& laws) const;
  void check_conservation() const;

  // engine_congestion.cc: ECN marks, and rates that follow them.
  void lay_out_congestion();
  [[nodiscard]] Fate fate_behind_port(std::uint32_t stream, Fate fate, Time wire_ns, Time t,
                                      Time there);
  void mark_seen(std::uint32_t stream, Time t);
  void notified(std::uint32_t stream, Time t);
  [[nodiscard]] bool hold_back(std::uint32_t stream, Time t);
  void released(std::uint32_t stream, Time t);

  // engine_packets.cc: processing units and the path of a packet.
  void activate(std::uint32_t stream, Time t);
  [[nodiscard]] Time unit_begins(std::size_t side, std::uint32_t unit, Time t);
  void unit_sends(UnitQueue::Unit which, Time t);
  void leave_ring(Unit& unit);
  [[nodiscard]] Time service_time(const Nic& nic);
  void call_context(Nic& nic, std::uint32_t stream, Time t);
  void send_request(std::uint32_t stream, Time t);
  void send_data(std::uint32_t from, std::uint32_t stream, Time t, bool turn_begins);
  void send_again(std::uint32_t stream, Time t);
  [[nodiscard]] Time recall_flow(Nic& nic, std::uint32_t stream, Time t);
  Arrival travel(std::uint32_t from, std::uint32_t to, std::uint32_t stream, const Freight& freight,
                 Time t, Fate fate, bool turn_begins);
  Time send_control(std::uint8_t from, std::uint8_t to, double bytes, Time t);
  Time cross(Nic& sender, Nic& receiver, std::size_t direction, double wire_ns, Time t, bool looped,
             bool data, Time& wire_end);
  [[nodiscard]] Time thaw(Time t) const;
  /// A data packet is in memory.
  void record(Time t, double payload) {
    payload_ += payload;
    if (++data_packets_ == next_stamp_) stamp(t);
  }
  void stamp(Time t);
  [[nodiscard]] Crossing crossing_of(const Steering& steering, double groups) const;
  void draw_crossing(Steering& steering);
  /// Of the next packet.
  [[nodiscard]] const Crossing& crossing(Steering& steering) {
    if (steering.varies) draw_crossing(steering);
    return steering.current;
  }

  [[nodiscard]] std::size_t number_of(const Nic& nic) const {
    return static_cast<std::size_t>(&nic - nics_.data());
  }
  /// Where in host memory the n-th WQE of a stream lies: what the WQE cache knows it by.
  [[nodiscard]] std::uint64_t wqe_slot(std::uint32_t stream, std::uint32_t index) const {
    return static_cast<std::uint64_t>(stream) * w_.send_depth + index % w_.send_depth;
  }
  [[nodiscard]] std::uint32_t qp_of(std::uint32_t stream) const { return stream >> lane_bits_; }
  /// The client that a QP belongs to, by its number among the RNICs.
  [[nodiscard]] std::uint32_t client_of(std::uint32_t qp) const {
    const std::uint32_t client = qp / w_.qp_count;
    return client == 0 ? 0 : client + 1;
  }
  /// 0 from a client to the server, 1 back.
  [[nodiscard]] static std::size_t direction_from(std::uint32_t nic) {
    return nic == kServer ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t stream) const { return stream ^ 1U; }
  [[nodiscard]] const Shape& shape_at(std::uint32_t index) const {
    return shapes_[shapes_.size() == 1 ? 0 : index % shapes_.size()];
  }
  [[nodiscard]] Time jitter(Time mean) { return random_.exponential(mean); }

  Parameters p_;
  Workload w_;
  Effects effects_;
  statistics::Random random_;
  PcieLink pcie_;
  std::vector<Nic> nics_;
  std::vector<Host> hosts_;
  std::vector<Stream> streams_;
  std::vector<Thread> threads_;
  std::vector<Shape> shapes_;
  std::array<Passage, 2> passages_;
  EventQueue events_;
  UnitQueue units_;
  std::array<Serial, 2> software_;  ///< the slow path, by direction
  Time one_way_ns_ = 0;
  Time packet_ns_ = 0;
  Time far_memory_ns_ = 0;        ///< to the client's buffers, beyond what near memory takes
  std::uint32_t wqe_blocks_ = 1;  ///< of 64 bytes
  std::uint32_t lanes_ = 2, lane_bits_ = 1;  ///< streams of one QP: 1, 2 or 4
  bool ping_pong_ = false, translation_matters_ = false, loopback_ = false;
  bool unusual_ = false;  ///< streams may rest, or give way to others
  bool routed_ = false;   ///< a packet's receiver is not just the other RNIC

  std::uint64_t pages_ = 1;
  // Receive WQEs on their way back, in order of time.
  struct Refill {
    Time time;
    std::uint32_t stream;
  };
  std::vector<Refill> refills_;
  std::size_t refill_head_ = 0;
  std::vector<Fifo<std::uint32_t>> owners_;  ///< of requests on QPs that threads share
  std::vector<Fifo<Time>> dues_;             ///< of requests in an open loop, by stream
  std::vector<Recovery> recoveries_;         ///< by stream; empty: nothing is lost
  Time outage_begins_ = kNever, outage_ends_ = kNever;
  std::uint64_t unheard_ = 0;  ///< streams
  SwitchPort port_;            ///< towards the server
  DcqcnRule rule_;
  std::vector<Pace> paces_;  ///< by stream; empty: nobody is told of congestion

  Time now_ = 0;
  std::uint64_t data_packets_ = 0, messages_delivered_ = 0, messages_lost_ = 0;
  double payload_ = 0;
  std::uint64_t packets_sent_ = 0;
  std::vector<Time> stamps_;  ///< when every 64th data packet was in memory
  std::uint64_t next_stamp_ = kPacketsPerStamp;
  std::vector<double> stamp_bytes_;
  std::size_t next_check_ = 0;
  statistics::SteadyEstimate estimate_;
  Time period_ = kNever, next_period_ = kNever;
  std::function<void(Time)> on_period_;
  Time round_began_ = 0;
  std::vector<Time> trips_;  ///< what latency() is made of
};

}  // namespace greynic::twin
