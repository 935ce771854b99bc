#include "pipeline/walks/uneven_walks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "greynic/statistics/random.h"
#include "pipeline/terms.h"

namespace greynic::model::pipeline {
namespace {

/// Packets that are looked at, after others that fill the windows; of messages, so many packets and messages at most.
constexpr std::size_t kPackets = 60000, kEvenPackets = 4000, kMessages = 401, kOfMessages = 100000;
/// Longer messages are there as soon as so many packets of them say: they come at the pace of a full RNIC.
constexpr double kLongest = 16384;

/// Draws how many masks a packet tries; the same every time.
class Draws {
 public:
  explicit Draws(const MaskShares& shares) {
    double sum = 0;
    for (const auto& [masks, share] : shares) {
      masks_.push_back(masks);
      upto_.push_back(sum += share);
    }
  }
  [[nodiscard]] double next() {
    const auto at = std::upper_bound(upto_.begin(), upto_.end(), random_.uniform() * upto_.back());
    return masks_[std::min<std::size_t>(static_cast<std::size_t>(at - upto_.begin()),
                                        masks_.size() - 1)];
  }

 private:
  std::vector<double> masks_, upto_;
  statistics::Random random_{1};
};

/// The n-th may enter when the (n - size)-th has left. A law's size is seldom whole: then between two of them.
class Window {
 public:
  explicit Window(double size) {
    const double most = std::clamp(size, 1.0, 1e4), whole = std::floor(most);
    part_ = most - whole;
    left_.assign(static_cast<std::size_t>(whole) + 1, 0.0);
  }
  [[nodiscard]] double admit(double t) const {
    const std::size_t later = at_ + 1 == left_.size() ? 0 : at_ + 1;
    return std::max(t, part_ * left_[at_] + (1 - part_) * left_[later]);
  }
  void leave(double t) {
    left_[at_] = t;
    if (++at_ == left_.size()) at_ = 0;
  }

 private:
  std::vector<double> left_;  ///< from `at_` on, the oldest first
  double part_ = 0;
  std::size_t at_ = 0;
};

/// So many packets walk at once; whoever is next takes the place that is free first.
class Stage {
 public:
  explicit Stage(double places)
      : places_(static_cast<std::size_t>(std::clamp(std::round(places), 1.0, 1e4))) {}
  /// When the packet is through; its place is free after `rest`.
  double walk(double begins, double walk_us, double rest) {
    if (free_.size() >= places_) {
      begins = std::max(begins, free_.top());
      free_.pop();
    }
    free_.push(begins + walk_us + rest);
    return begins + walk_us;
  }

 private:
  std::size_t places_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
};

/// One direction of the traffic, in us; what masks say of it is their mean.
struct Way {
  double pace = 0;      ///< between two packets, if they wait for nothing behind
  double wire = 0;      ///< of one packet
  double mask_us = 0;   ///< time of one mask at the hop
  double other_us = 0;  ///< of all masks at the other stage
  bool encap = false;   ///< the hop encapsulates
  double loop_packets = 0, loop_us = 0;
  double stage_us = 0;                          ///< of a packet in a stage without masks
  double encap_packets = 0, decap_packets = 0;  ///< walked at once
  double burst_gap_us = 0, burst_walk = 0;
};

/// Follows packets, one after the other.
class Walkers {
 public:
  explicit Walkers(const Way& way)
      : way_(way), loop_(way.loop_packets > 0 ? way.loop_packets : kOpenLoopPackets) {}

  /// When it and all before it are in memory.
  double pass(double masks) {
    const double here = masks * way_.mask_us;
    const double encap = way_.encap ? here : way_.other_us;
    const double decap = way_.encap ? way_.other_us : here;
    const double start = for_wire_.admit(loop_.admit(source_));
    source_ = start + way_.pace;
    wire_ = std::max(wire_, encap_.walk(start, encap, way_.stage_us)) + way_.wire;
    for_wire_.leave(wire_);
    const double begins = behind_burst(for_memory_.admit(wire_), decap);
    const double through = decap_.walk(begins, decap, way_.stage_us);
    walking_ = std::max(walking_, through);
    memory_ = std::max(memory_, through);
    for_memory_.leave(memory_);
    loop_.leave(memory_ + way_.loop_us);
    return memory_;
  }

 private:
  /// A stage in which nothing walks begins with a few packets, and takes the next when those are through.
  double behind_burst(double arrival, double decap) {
    if (arrival >= walking_) burst_ = 0;
    if (burst_ >= kBurstPackets) return std::max(arrival, gate_);
    if (burst_++ == 0) gate_ = 0;
    gate_ = std::max(gate_, arrival + way_.burst_walk * decap + way_.burst_gap_us);
    return arrival;
  }

  /// Of these no law tells, as even walks do not show them: a common RNIC's.
  static constexpr double kForWire = 64, kForMemory = 512;

  const Way& way_;
  Window loop_, for_wire_{kForWire}, for_memory_{kForMemory};
  Stage encap_{way_.encap_packets}, decap_{way_.decap_packets};
  double source_ = 0, wire_ = 0, memory_ = 0;
  double walking_ = 0, gate_ = 0;
  int burst_ = 0;
};

double us_a_packet(const Way& way, std::size_t packets, const std::function<double()>& masks) {
  Walkers walkers(way);
  double began = 0, last = 0;
  for (std::size_t i = 0; i < 2 * packets; ++i) {
    last = walkers.pass(masks());
    if (i + 1 == packets) began = last;
  }
  return (last - began) / static_cast<double>(packets);
}

/// From the first packet until all are in memory.
double us_of_a_message(const Way& way, std::size_t packets, const std::function<double()>& masks) {
  Walkers walkers(way);
  double last = 0;
  for (std::size_t i = 0; i < packets; ++i) last = walkers.pass(masks());
  return last;
}

/// Least masks at which `time_of` takes as long; it grows with them.
double as_long_as(double time, double least, double most,
                  const std::function<double(double)>& time_of) {
  constexpr double kExact = 1e-3;
  while (most - least > kExact * std::max(most, 1.0)) {
    const double middle = (least + most) / 2;
    (time_of(middle) < time ? least : most) = middle;
  }
  return (least + most) / 2;
}

double median_of_list(std::vector<double> list) {
  const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
  std::nth_element(list.begin(), middle, list.end());
  return *middle;
}

/// Of what passes the hop, if each packet tried so many masks there: payload, or the requests of READs. `full`: all QPs
/// send as much as they may, else one of them sends a message.
Way way_of(const Prepared<double>& prepared, Setting asked, Hop hop, double masks, bool full) {
  using L = Law<double>;
  asked.masks[static_cast<std::size_t>(hop)] = masks;
  const L law(prepared, asked);
  const bool there = hop == Hop::kClientEncap || hop == Hop::kServerDecap;
  const bool request = law.asks() && there;
  const Path<double>& path = there ? law.request : law.answer;
  const auto operation = static_cast<std::size_t>(asked.operation);
  const double packets = request ? 1.0 : std::max(1.0, law.packets);
  Way way;
  way.encap = hop == Hop::kClientEncap || hop == Hop::kServerEncap;
  way.mask_us = way.encap ? prepared.encap_us[operation] : prepared.decap_us[operation];
  way.other_us = way.encap ? path.decap_walk : path.encap_walk;
  way.loop_packets = request ? 0.0 : law.p[kLoopPackets];
  const Path<double>& back = there ? law.answer : law.request;
  way.loop_us = law.p[kLoopBaseUs] + back.encap_walk + back.decap_walk;
  way.stage_us = law.p[kStageBaseUs];
  way.encap_packets = law.p[kEncapPackets];
  way.decap_packets = law.p[kDecapPackets];
  way.burst_gap_us = law.p[kBurstGapUs];
  way.burst_walk = law.p[kBurstWalk];
  way.wire = request ? 0.0 : law.part_us(L::kLine, {}) / packets;
  way.pace = law.qp_unit(path);
  if (!full) return way;
  way.pace = 0;
  const auto held_by = [&](std::initializer_list<std::size_t> parts) {
    for (const std::size_t part : parts) {
      way.pace = std::max(way.pace, law.part_us(part, {}) / packets);
    }
  };
  held_by({L::kBus, L::kPosting, L::kMessage, L::kQpUnit, L::kQpWindowed, L::kSlot});
  if (request) held_by({L::kLine, L::kEncap, L::kDecap, L::kLooping});
  return way;
}

/// Of so many messages as a test plays, the median is not that of all: the mean from the 47th to the 53rd percentile.
double median_of_some(const MaskShares& shares) {
  constexpr double kFrom = 0.47, kTo = 0.53;
  double below = 0, sum = 0;
  for (const auto& [masks, share] : shares) {
    sum += masks * std::max(0.0, std::min(kTo, below + share) - std::max(kFrom, below));
    below += share;
  }
  return sum / (kTo - kFrom);
}

/// Requests are single packets: a READ waits for one of them, and its payload for a loop of which they are a part.
double behind_requests(const Prepared<double>& prepared, Setting asked, Hop hop,
                       const MaskShares& shares) {
  double& masks = asked.masks[static_cast<std::size_t>(hop)];
  const double mean = masks;
  const double median = median_of_some(shares);
  const auto latency = [&](double tried) {
    masks = tried;
    return Law<double>(prepared, asked).latency_us();
  };
  const auto operation = static_cast<std::size_t>(asked.operation);
  const bool encap = hop == Hop::kClientEncap || hop == Hop::kServerEncap;
  const double mask_us = encap ? prepared.encap_us[operation] : prepared.decap_us[operation];
  const double time = latency(mean) + (median - mean) * mask_us;
  return as_long_as(time, 0, shares.back().first, latency);
}

}  // namespace

AlikeMasks masks_alike(const Values& values, const Setting& setting, Hop hop,
                       const MaskShares& shares) {
  double mean = 0, all = 0;
  for (const auto& [masks, share] : shares) {
    mean += masks * share;
    all += share;
  }
  mean /= all;
  const double least = shares.front().first, most = shares.back().first;
  if (!(least < most)) return {mean, mean};
  std::array<double, kParameterCount> p;
  for (int j = 0; j < kParameterCount; ++j) p[j] = shown(static_cast<Parameter>(j), values[j]);
  const Prepared<double> prepared(p);
  Setting asked = setting;
  asked.masks[static_cast<std::size_t>(hop)] = mean;
  Draws draws(shares);
  const auto drawn = [&] { return draws.next(); };
  AlikeMasks alike;
  const double pace = us_a_packet(way_of(prepared, asked, hop, mean, true), kPackets, drawn);
  alike.for_rate = as_long_as(pace, least, most, [&](double masks) {
    return us_a_packet(way_of(prepared, asked, hop, masks, true), kEvenPackets,
                       [&] { return masks; });
  });
  const bool there = hop == Hop::kClientEncap || hop == Hop::kServerDecap;
  if (there && asked.operation == Operation::kRead) {
    alike.for_latency = behind_requests(prepared, asked, hop, shares);
    return alike;
  }
  const auto count = static_cast<std::size_t>(std::clamp(asked.packets(), 1.0, kLongest));
  std::vector<double> times(std::min(kMessages, kOfMessages / count | 1));
  // The answer of a ping-pong passes no mask, but word of its packets does: many words, so their mean.
  const auto answer_us = [&](double masks) {
    if (asked.operation == Operation::kRead || asked.operation == Operation::kAtomic) return 0.0;
    Way answer = way_of(prepared, asked, hop, masks, false);
    answer.loop_us += masks * answer.mask_us;
    return us_of_a_message(answer, count, [] { return 0.0; });
  };
  const Way alone = way_of(prepared, asked, hop, mean, false);
  for (double& one : times) one = us_of_a_message(alone, count, drawn);
  const double time = median_of_list(std::move(times)) + answer_us(mean);
  alike.for_latency = as_long_as(time, least, most, [&](double masks) {
    return us_of_a_message(way_of(prepared, asked, hop, masks, false), count,
                           [&] { return masks; }) +
           answer_us(masks);
  });
  return alike;
}

}  // namespace greynic::model::pipeline
