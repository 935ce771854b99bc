#pragma once

/// How far the clock of another host is from ours, from round trips: we ask at `sent`, it reads its
/// clock, we have the answer at `received`. Its reading was made between the two, whatever the way
/// there and back took, so each round trip bounds the distance from both sides. A clock that goes a
/// little too fast or too slow, by the same share all the time, is a line that passes between all
/// bounds; the lines that do are all that it can be. Nothing is assumed of how delays are spread: half
/// a round trip there is no better guess than any other.
///
/// Not promised: that the rate stays the same for ever. Only the last while is looked at, and when no
/// line fits, less of it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace greynic::trace {

struct RoundTrip {
  std::int64_t sent_ns = 0, received_ns = 0;  ///< by our clock
  std::int64_t there_ns = 0;                  ///< by theirs
};

struct ClockDistance {
  double ns = 0;        ///< their clock less ours
  double error_ns = 0;  ///< the truth is no farther away
};

class ClockFit {
 public:
  /// In the order of their times.
  void add(const RoundTrip& trip);
  /// At a time of our clock; nothing before the first round trip.
  [[nodiscard]] std::optional<ClockDistance> at(std::int64_t ours_ns) const;

 private:
  /// The distance at `ns` behind the first time is between the two.
  struct Bound {
    double ns = 0, least = 0, most = 0;
  };
  [[nodiscard]] bool fits() const;
  void thin_out();

  std::int64_t origin_ns_ = 0;
  double offset_ns_ = 0;  ///< taken off, so that numbers stay small
  std::deque<Bound> bounds_;
};

/// A clock, and the processor's time stamp counter before and after it was read.
struct CountedTime {
  std::int64_t ns = 0;
  std::uint64_t first = 0, last = 0;  ///< both 0: this processor has no such counter
};

/// CLOCK_MONOTONIC of this host.
[[nodiscard]] CountedTime counted_now();

/// Whether another host reads the same time stamp counter as we, as virtual machines of one physical one
/// may. In each round trip their counter must stand between ours before and after: for counters that have
/// nothing to do with each other that is as likely as a round trip is long in years of counting. Then
/// their clock is compared with ours at one count, and the network plays no part.
class SharedCounter {
 public:
  void add(const CountedTime& before, const CountedTime& theirs, const CountedTime& after);
  [[nodiscard]] bool shown() const;
  /// Nothing unless it is shown.
  [[nodiscard]] std::optional<ClockDistance> at(std::int64_t ours_ns) const;

 private:
  std::size_t trips_ = 0;
  bool refuted_ = false;
  ClockFit fit_;
};

}  // namespace greynic::trace
