#pragma once

/// The simulator: two hosts, or several that send to one, their RNICs and the wire, packet by
/// packet in virtual time.
///
/// A packet is handled once, when its processing unit has finished it: all stages behind it are
/// closed forms that depend only on earlier packets. What has a decision in it (a WQE arrives, a
/// message is delivered, a thread posts) is an event. So the cost of a run grows with packets and
/// messages, and neither with QPs nor with masks.
///
/// The engine is the loop that takes what happens next, and the order in which its parts act:
///
///   threads -> request_engine -> processing_units -> path -> receives -> answers -> threads
///                 host_memory        congestion               recovery
///
/// Each part (parts/*.h) says what it needs and what it gives.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/books.h"
#include "engine/meter.h"
#include "parts/answers.h"
#include "parts/arrivals.h"
#include "parts/congestion.h"
#include "parts/host_memory.h"
#include "parts/path.h"
#include "parts/processing_units.h"
#include "parts/receives.h"
#include "parts/recovery.h"
#include "parts/request_engine.h"
#include "parts/threads.h"
#include "parts/world.h"

namespace greynic::twin {

/// One run; use an object once.
class Engine {
 public:
  Engine(const Parameters& parameters, const HostLoad& load, const Effects& effects,
         std::uint64_t seed);
  Engine(const Engine&) = delete;  // parts hold on to their neighbours
  Engine& operator=(const Engine&) = delete;

  /// Keeps queues full, posts rounds, or posts what is due (offered_rate), until the rate is known
  /// well enough or time is up.
  [[nodiscard]] BandwidthResult run_bandwidth(const RunLimits& limits);
  /// One request at a time on one QP: SEND and WRITE are answered by the peer, READ and ATOMIC by
  /// its RNIC. Half of the round trip of two SENDs or WRITEs, the whole of a READ's or an atomic's.
  [[nodiscard]] LatencyResult run_latency(const RunLimits& limits, std::uint64_t most_rounds);

  /// Traffic flows, and then the server's RNIC answers nothing for `outage_ns`; over when every QP
  /// has heard from it again or failed.
  void run_outage(Time outage_ns);

  /// Of the run that is over: of run_latency(), or in an open loop the time from when a message was
  /// due to its completion.
  [[nodiscard]] LatencyResult latency() const { return meter_.latency(); }
  /// Of the client (0), the server (1), and what other clients there are.
  [[nodiscard]] const NicCounters& counters(std::size_t side) const {
    return world_.nics[side].counters;
  }
  [[nodiscard]] std::vector<NicCounters> all_counters() const;
  /// Messages that a QP has sent whole; each client has as many QPs, one client's after another's.
  [[nodiscard]] std::uint32_t messages_sent(std::uint32_t qp) const {
    return world_.streams[static_cast<std::size_t>(qp) << world_.lane_bits].sent;
  }
  /// Times that the switch told a client to pause.
  [[nodiscard]] std::uint64_t port_pause_count() const { return path_.port().pause_count(); }
  /// Times that the server told the client to pause.
  [[nodiscard]] std::uint64_t pause_count() const {
    return world_.nics[kServer].receive_buffer.pause_count();
  }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t data_packets() const { return world_.moved.data_packets; }
  /// Called between events when virtual time passes each multiple of `period`; several may be.
  void on_period(Time period, std::function<void(Time)> call);
  /// Where everything is now, and what was counted of it (books.h). Costs as much as there are
  /// streams and events.
  [[nodiscard]] Ledger ledger() const;
  [[nodiscard]] std::string broken_law() const { return twin::broken_law(ledger()); }
  /// Bytes held for QPs and threads: for the memory claim of docs/twin/engine.md.
  [[nodiscard]] std::size_t bytes_per_qp() const { return world_.lanes * sizeof(Stream); }

 private:
  // Set-up.
  void lay_out(bool ping_pong);
  void lay_out_streams();
  void lay_out_stream(std::uint32_t stream);
  void lay_out_caches();
  void lay_out_units();

  // The loop.
  void step();
  void pass_periods();
  void handle(const Event& event);
  [[nodiscard]] bool over() const { return world_.events.empty() && units_.time() >= kNever; }
  [[nodiscard]] bool enough(const RunLimits& limits) {
    return (now_ >= limits.duration || meter_.judgement_is_due()) && is_enough(limits);
  }
  [[nodiscard]] bool is_enough(const RunLimits& limits);
  void check_books() const;
  void count_events(Ledger& ledger) const;

  // What happens to a packet, and to a message.
  void send(std::uint32_t nic, std::uint32_t stream, Time t, bool turn_begins);
  void send_request(std::uint32_t stream, Time t);
  void send_data(std::uint32_t from, std::uint32_t stream, Time t, bool turn_begins);
  [[nodiscard]] Arrival travel(std::uint32_t from, std::uint32_t to, std::uint32_t stream,
                               const Freight& freight, Time t, Fate fate, bool turn_begins);
  [[nodiscard]] Fate fate_behind_port(std::uint32_t stream, Fate fate, Time wire_ns, Time start,
                                      Time there);
  void unanswered(std::uint32_t stream, std::uint32_t answers, Time t);
  void activate(std::uint32_t stream, Time t) { units_.activate(world_, stream, t); }
  void delivered(std::uint32_t stream, std::uint32_t number, Time t);
  void complete_one(std::uint32_t stream, Time t);
  void post_round_trip(std::uint32_t stream, Time t);

  World world_;
  Path path_;
  Meter meter_{world_};
  Receives receives_{world_};
  HostMemory memory_{world_};
  Recovery recovery_{world_, path_, receives_};
  Answers answers_{world_, path_, recovery_};
  Congestion congestion_{world_, path_};
  ProcessingUnits units_{congestion_};
  RequestEngine requests_{world_, memory_};
  Arrivals arrivals_{world_};
  Threads threads_{world_, arrivals_, recovery_};

  bool routed_ = false;  ///< a packet's receiver is not just the other RNIC
  Time now_ = 0;
  Time round_began_ = 0;  ///< of a round trip
  struct Period {
    Time length, next;
    std::function<void(Time)> call;
  };
  std::vector<Period> periods_;
  Time next_period_ = kNever;  ///< the first of theirs
};

}  // namespace greynic::twin
