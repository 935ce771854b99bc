#include "greynic/trace/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cmath>

#include "greynic/trace/monotonic.h"

namespace greynic::trace {
namespace {

constexpr double kMostRate = 500e-6;  // beyond what a clock that is not broken is off
constexpr double kLongestNs = 120e9;  // a rate changes with temperature, within minutes
constexpr std::size_t kMostBounds = 256;
constexpr int kHalvings = 60;  // of the range of rates: below any clock's grain

/// The greatest `least - rate * ns` and the smallest `most - rate * ns`: where a line of this rate may
/// begin.
template <typename Bounds>
std::pair<double, double> begins(const Bounds& bounds, double rate) {
  double least = -INFINITY;
  double most = INFINITY;
  for (const auto& bound : bounds) {
    least = std::max(least, bound.least - rate * bound.ns);
    most = std::min(most, bound.most - rate * bound.ns);
  }
  return {least, most};
}

/// Where a concave function is greatest between two rates.
template <typename Function>
double greatest(double low, double high, Function function) {
  constexpr double kThird = 1.0 / 3;
  for (int i = 0; i < 2 * kHalvings; ++i) {
    const double one = low + (high - low) * kThird;
    const double other = high - (high - low) * kThird;
    (function(one) < function(other) ? low : high) = function(one) < function(other) ? one : other;
  }
  return (low + high) / 2;
}

/// The last rate from `good` towards `bad` for which a line fits.
template <typename Fits>
double edge(double good, double bad, Fits fits) {
  if (fits(bad)) return bad;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (good + bad) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

void ClockFit::add(const RoundTrip& trip) {
  if (trip.received_ns < trip.sent_ns) return;
  if (bounds_.empty()) {
    origin_ns_ = trip.sent_ns;
    offset_ns_ = static_cast<double>(trip.there_ns - trip.sent_ns);
  }
  // Both bounds are of the time of the reading; in ours it lies anywhere between sent and received.
  const double sent = static_cast<double>(trip.sent_ns - origin_ns_);
  const double received = static_cast<double>(trip.received_ns - origin_ns_);
  const double there = static_cast<double>(trip.there_ns - origin_ns_) - offset_ns_;
  const double slack = kMostRate * (received - sent);
  bounds_.push_back({.ns = (sent + received) / 2,
                     .least = there - received - slack,
                     .most = there - sent + slack});
  while (bounds_.back().ns - bounds_.front().ns > kLongestNs) bounds_.pop_front();
  if (bounds_.size() > kMostBounds) thin_out();
  while (bounds_.size() > 1 && !fits()) {
    bounds_.erase(bounds_.begin(),
                  bounds_.begin() + static_cast<std::ptrdiff_t>((bounds_.size() + 1) / 2));
  }
}

/// Of each four neighbours the two that bound most closely stay: the quickest way there and back each.
void ClockFit::thin_out() {
  std::deque<Bound> kept;
  for (std::size_t i = 0; i < bounds_.size(); i += 4) {
    const auto first = bounds_.begin() + static_cast<std::ptrdiff_t>(i);
    const auto behind =
        bounds_.begin() + static_cast<std::ptrdiff_t>(std::min(i + 4, bounds_.size()));
    const auto low = std::max_element(first, behind, [](const Bound& one, const Bound& other) {
      return one.least < other.least;
    });
    const auto high = std::min_element(
        first, behind, [](const Bound& one, const Bound& other) { return one.most < other.most; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  bounds_ = std::move(kept);
}

bool ClockFit::fits() const {
  const auto room = [this](double rate) {
    const auto [least, most] = begins(bounds_, rate);
    return most - least;
  };
  return room(greatest(-kMostRate, kMostRate, room)) >= 0;
}

std::optional<ClockDistance> ClockFit::at(std::int64_t ours_ns) const {
  if (bounds_.empty()) return std::nullopt;
  const auto when = static_cast<double>(ours_ns - origin_ns_);
  const auto room = [this](double rate) {
    const auto [least, most] = begins(bounds_, rate);
    return most - least;
  };
  const auto fitting = [&room](double rate) { return room(rate) >= 0; };
  const double good = greatest(-kMostRate, kMostRate, room);
  const double slowest = edge(good, -kMostRate, fitting);
  const double fastest = edge(good, kMostRate, fitting);
  const auto highest = [&](double rate) { return begins(bounds_, rate).second + rate * when; };
  const auto lowest = [&](double rate) { return -begins(bounds_, rate).first - rate * when; };
  const double most = highest(greatest(slowest, fastest, highest));
  const double least = -lowest(greatest(slowest, fastest, lowest));
  return ClockDistance{.ns = offset_ns_ + (most + least) / 2,
                       .error_ns = std::max(0.0, (most - least) / 2) + 1};
}

CountedTime counted_now() {
  CountedTime now;
#if defined(__x86_64__)
  unsigned processor = 0;
  now.first = __rdtscp(&processor);
  now.ns = monotonic_ns();
  now.last = __rdtscp(&processor);
#else
  now.ns = monotonic_ns();
#endif
  return now;
}

void SharedCounter::add(const CountedTime& before, const CountedTime& theirs,
                        const CountedTime& after) {
  const bool between = before.first != 0 && before.last <= theirs.first &&
                       theirs.first <= theirs.last && theirs.last <= after.first;
  if (refuted_ || !between || after.first == before.last || after.ns <= before.ns) {
    refuted_ = true;
    return;
  }
  ++trips_;
  // The time of a count by our clock: on the line between our two readings, each of which may have been
  // made at any count of its own.
  const auto ticks = static_cast<double>(after.first - before.last);
  const double rate = static_cast<double>(after.ns - before.ns) / ticks;
  const auto width = static_cast<double>((before.last - before.first) + (after.last - after.first));
  const double slack = rate * width + 1;
  const auto ours = [&](std::uint64_t count) {
    return static_cast<double>(before.ns) + rate * static_cast<double>(count - before.last);
  };
  fit_.add({.sent_ns = static_cast<std::int64_t>(std::floor(ours(theirs.first) - slack)),
            .received_ns = static_cast<std::int64_t>(std::ceil(ours(theirs.last) + slack)),
            .there_ns = theirs.ns});
}

bool SharedCounter::shown() const {
  constexpr std::size_t kEnough = 16;
  return !refuted_ && trips_ >= kEnough;
}

std::optional<ClockDistance> SharedCounter::at(std::int64_t ours_ns) const {
  return shown() ? fit_.at(ours_ns) : std::nullopt;
}

}  // namespace greynic::trace
