#pragma once

/// The twin: a virtual RNIC pair as a target. "twin:cx6" opens a model that is compiled in,
/// "twin:path/to/model.json" one from a file; greynic devices lists them. Measurements run in
/// virtual time, cost no hardware, and with the same seed give the same numbers, whatever the
/// thread count.
///
/// Options, as "twin:cx6?option=value&option=value":
///   profile=logs|surface   parameter set of the model file; default: the file's own
///   defects=S1,S6,C4|none  planted defects that are on (docs/twin/defects.md); default: S6, the
///                          walk through masks one after another that every published RNIC shows
///   threads=N              measurements at once; default: as many as the machine has cores
///   posting=window|round   keep the queues full (default), or wait after each send_queue_depth
///   overlay=on|off         VXLAN around every packet; default: on where the RNIC has a switch
///   switch=ovs|FILE        virtual switch and driver (docs/formats/parameter_set.md)
///   hosts=N, rnics=N, fleet=cloud|training|FILE   a fleet instead of two hosts (docs/fleet.md)
///   models=A,B,C           RNIC models of that fleet, with as many hosts each
///   loss=P                 share of data packets, and of answers to them, that the wire corrupts;
///                          RC goes back N
///   ack_timeout=C, retry_count=N   how long RC waits for an acknowledgement (4.096 us x 2^C), and
///                          how often it sends again before its QP fails; default: 14, 7
///   rnr_retry=N, min_rnr_timer=C   how often it asks a receiver that is not ready (7: without
///                          end), and the code of the time between; default: 7, 12
///   server_link_gbps=R     the server's link is slower than the client's: packets queue at a
///                          switch port between them, which pauses the client (PFC)
///   pfc=on|off             off: such a port, or one that several senders (host_count) meet at,
///                          drops what its buffer cannot hold; default: on
///   dcqcn=on|off           that port marks packets (ECN), and QPs are slowed down; default: off
///   mr_churn=N             memory regions a second that each host deregisters and registers anew
///   large_groups=N         the driver's auto-grouping: masks beyond N cost a group for each rule
///                          (mlx5 has 15 by default); unset: a group a mask
///   exact_match=first|in_order   an exact-match group of a layout is looked into first, or at its
///                          place (default)
///   bursts=DELAY           also measures burst_count, burst_p99_us and victim_share: a packet that
///                          waits longer than this (15us) in front of the server takes part in a
///                          burst (docs/bursts.md)
///   stop=steady|duration   stop when the mean is known well enough (default), or when time is up
///
/// Every parameter that a measurement depends on is in info().facts, with unit, grade and source.
/// The headers behind it are private: who must infer the truth sees observations and counters only.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "greynic/target/counter_arena.h"
#include "greynic/target/target.h"

namespace greynic::twin {

/// Counters while traffic runs, named as in observations.
struct CounterSnapshot {
  std::chrono::nanoseconds virtual_time{};
  std::span<const std::pair<std::string, double>> counters;
};
/// Called every counter_poll_ms of virtual time, and once at least for a measurement, from the thread that simulates; with several
/// measurements at once from several threads, but never for one measurement from two.
using CounterSink = std::function<void(const CounterSnapshot&)>;

class Twin : public target::Target {
 public:
  /// Observations are the same with a sink and without. An empty one takes it away.
  virtual void set_counter_sink(CounterSink sink) = 0;
  /// Samples of an observation go through an arena of these, one for each measurement.
  virtual void set_counter_arenas(target::CounterArenas arenas) = 0;
};

/// Opens a twin. kBadInput for an unknown model, option or defect, or a model file that is wrong.
[[nodiscard]] Result<std::unique_ptr<Twin>> create(const target::Spec& spec);

/// The same from "twin:cx6?profile=surface".
[[nodiscard]] Result<std::unique_ptr<Twin>> create(std::string_view text);

/// For target::register_kind.
[[nodiscard]] target::Kind kind();

}  // namespace greynic::twin
