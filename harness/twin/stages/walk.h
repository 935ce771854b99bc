#pragma once

/// The walk of a packet through the flow groups (distinct masks) of one direction of an eSwitch.
///
/// A packet is checked against one group after another, so it takes groups x time-of-a-group to get
/// through (`latency`). Many packets walk at once, and what bounds them is (1) the steering pipes,
/// where every hop takes a clock cycle (`occupancy` is what a packet takes of the direction's
/// pipes), and (2) a window on packets under way. (3) A switch that was idle starts with a short
/// burst and takes the next packets only when the first of them is through: that is why an 8 KiB
/// message waits so much longer behind groups than a 4 KiB one (docs/twin/validation.md, item 1).
///
/// Source: ScalaCN logs for 1 to 3; Neo-Host counter reports for cycles and pipes.

#include "stages/stage.h"

namespace greynic::twin {

class Walk {
 public:
  struct Bounds {
    std::size_t burst_packets = 0;   ///< 0: no such rule
    std::size_t window_packets = 0;  ///< 0: not bounded
    bool equal_walks = true;         ///< all packets walk as far: a ring does for the window
  };

  Walk() = default;
  explicit Walk(const Bounds& bounds)
      : burst_(bounds.burst_packets),
        ring_(bounds.equal_walks ? bounds.window_packets : 0),
        slots_(bounds.equal_walks ? 0 : bounds.window_packets) {}

  /// Packets come in order of their arrival. Returns when the walk ends. Acknowledgements and
  /// requests (`data` false) carry nothing to place in memory and wait for no burst.
  Time pass(Time arrival, Time latency, Time occupancy, bool data) {
    Time start = arrival;
    if (latency > 0) {
      if (burst_ != 0 && data) start = wait_for_burst(arrival, latency);
      start = slots_.admit(ring_.admit(start));
    }
    pipe_.pass(start, occupancy);
    const Time end = std::max(start + latency, pipe_.free());
    if (latency > 0) {
      ring_.enter(end);
      slots_.enter(end);
      if (data) busy_until_ = std::max(busy_until_, end);
    }
    return end;
  }

 private:
  Time wait_for_burst(Time arrival, Time latency) {
    if (arrival >= busy_until_) {
      in_burst_ = 1;
      gate_ = arrival + latency;
      return arrival;
    }
    if (in_burst_ < burst_) {
      ++in_burst_;
      gate_ = std::max(gate_, arrival + latency);
      return arrival;
    }
    return std::max(arrival, gate_);
  }

  std::size_t burst_ = 0;
  std::size_t in_burst_ = 0;
  Window ring_;
  Slots slots_;
  Serial pipe_;
  Time gate_ = 0;
  Time busy_until_ = 0;
};

}  // namespace greynic::twin
