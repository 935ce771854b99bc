#pragma once

/// Rates of QPs that follow the marks of a switch port (DCQCN, dcqcn.h): what the packets of each
/// stream find there, what its receiver says of it, and when the stream may go on.
///
/// Needs: the world, and the path with its port. Gives: events kMarked, kNotified and kReleased,
/// and whether a stream has to wait before it joins its unit's ring.

#include <cstdint>
#include <vector>

#include "parts/path.h"
#include "parts/world.h"
#include "stages/dcqcn.h"

namespace greynic::twin {

/// The RNIC's constants of DCQCN.
[[nodiscard]] DcqcnRule dcqcn_rule(const Parameters& parameters);

class Congestion {
 public:
  Congestion(World& world, Path& path) : world_(world), path_(path) {}
  /// Where the load asks for DCQCN and the path has a port; else nobody is told of congestion.
  void lay_out();

  /// A data packet was put on the wire at t, and the receiver is through with its headers at
  /// `there` unless the port dropped it.
  void sent(std::uint32_t stream, Time wire_ns, Time t, Time there);
  /// Is the stream ahead of its rate? Then it joins its unit's ring later.
  [[nodiscard]] bool hold_back(std::uint32_t stream, Time t) {
    return !paces_.empty() && is_ahead(stream, t);
  }

  // Events, by their names. After kReleased the stream is to be activated.

  /// The receiver finds a mark, and tells the sender when it has not done so of late. A
  /// notification that is lost slows nobody down.
  void marked(std::uint32_t stream, Time t);
  void notified(std::uint32_t stream, Time t);
  void released(std::uint32_t stream) { paces_[stream].held = false; }

 private:
  struct Pace {  ///< of a stream
    RateLimiter limiter;
    Time next_cnp = 0;  ///< the receiver sends none before
    bool held = false;  ///< has to wait before it joins its unit's ring
  };
  [[nodiscard]] bool is_ahead(std::uint32_t stream, Time t);

  World& world_;
  Path& path_;
  DcqcnRule rule_;
  std::vector<Pace> paces_;
};

}  // namespace greynic::twin
