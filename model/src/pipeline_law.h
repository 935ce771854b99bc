#pragma once

/// The pipeline law as a function of its parameters, for numbers and for derivatives alike. The
/// derivation stands in docs/models/pipeline.md; names and units in pipeline_parameters.h.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "doorbells.h"
#include "pipeline_parameters.h"
#include "setting.h"

namespace greynic::model::pipeline {

/// A burst is what a QP hands over before another gets its turn.
inline constexpr double kBurstPackets = 4.0;

/// Largest of several positive times; near a tie the terms add up a little, as queues do.
template <typename T, std::size_t N>
T smooth_max(const std::array<T, N>& terms, const T& sharpness) {
  using std::exp;
  using std::log;
  const T* largest = &terms[0];
  for (const T& term : terms) {
    if (term > *largest) largest = &term;
  }
  // Terms below this share change nothing that could be measured.
  constexpr double kNegligible = 0.25;
  T sum(1.0);
  bool alone = true;
  for (const T& term : terms) {
    if (&term == largest || !(term > *largest * kNegligible)) continue;
    sum += exp(sharpness * log(term / *largest));
    alone = false;
  }
  if (alone) return *largest;
  return *largest * exp(log(sum) / sharpness);
}

/// Share of accesses that miss a cache of `capacity` entries, replaced at random, when `count` are
/// used at random: 1 - capacity/count beyond the capacity, with the knee rounded.
template <typename T>
T miss_at_random(double count, const T& capacity) {
  using std::exp;
  using std::log;
  constexpr double kRoundness = 8.0;
  const T fill = T(count) / capacity;
  if (!(fill > 0.05)) return T(0.0);
  return T(1.0) - exp(log(T(1.0) + exp(kRoundness * log(fill))) * (-1.0 / kRoundness));
}

/// Root h < 1 of h = exp(-(1 - h) fill) for fill > 1.
[[nodiscard]] double hit_share_in_turn(double fill);

inline double value_of(double x) { return x; }
template <typename T>
double value_of(const T& x) {
  return x.a;
}

/// The same when the `count` are used in turn, over and over. Between two uses of an entry
/// count x miss others were brought in, each of which threw it out with odds of 1 / capacity; so
/// the share of hits obeys h = exp(-(1 - h) count / capacity), which is 1 up to the capacity.
template <typename T>
T miss_in_turn(double count, const T& capacity) {
  const T fill = T(count) / capacity;
  const double x = value_of(fill);
  if (!(x > 1.0)) return T(0.0);
  const double hit = hit_share_in_turn(x);
  // d miss / d fill by the implicit function theorem.
  const double slope = hit * (1.0 - hit) / (1.0 - x * hit);
  return T(1.0 - hit) + (fill - x) * slope;
}

/// Where the median of a message with a few accesses lies between never and always missing.
template <typename T>
T median_of(const T& miss) {
  const T hit = T(1.0) - miss;
  const T m = miss * miss * miss;
  return m / (m + hit * hit * hit);
}

/// What one direction of the traffic meets: one encapsulation, one decapsulation.
template <typename T>
struct Path {
  T encap_walk;  ///< us
  T decap_walk;
  double encap_masks;
};

template <typename T>
struct Law {
  const std::array<T, kParameterCount>& p;  ///< shown scale
  const Setting& s;
  T encap_us;
  T decap_us;

  Law(const std::array<T, kParameterCount>& values, const Setting& setting)
      : p(values), s(setting) {
    using std::exp;
    const int operation = static_cast<int>(s.operation);
    encap_us = p[kEncapNs] * exp(p[kEncapOfOperation + operation]) * 1e-3;
    decap_us = p[kDecapNs] * exp(p[kDecapOfOperation + operation]) * 1e-3;
  }

  [[nodiscard]] double masks(Hop hop) const { return s.masks[static_cast<int>(hop)]; }

  [[nodiscard]] Path<T> request() const {
    return {encap_us * masks(Hop::kClientEncap), decap_us * masks(Hop::kServerDecap),
            masks(Hop::kClientEncap)};
  }
  [[nodiscard]] Path<T> answer() const {
    return {encap_us * masks(Hop::kServerEncap), decap_us * masks(Hop::kClientDecap),
            masks(Hop::kServerEncap)};
  }
  /// The direction in which payload flows when the traffic is one-way.
  [[nodiscard]] Path<T> payload_path() const {
    return s.operation == Operation::kRead ? answer() : request();
  }

  /// One packet in the unit that serves its QP, us.
  [[nodiscard]] T qp_unit(const Path<T>& path) const {
    return (p[kQpPacketNs] + p[kQpMaskNs] * path.encap_masks) * 1e-3;
  }
  [[nodiscard]] T encap_stage(const Path<T>& path) const {
    return (p[kStageBaseUs] + path.encap_walk) / p[kEncapPackets];
  }
  [[nodiscard]] T decap_stage(const Path<T>& path) const {
    return (p[kStageBaseUs] + path.decap_walk) / p[kDecapPackets];
  }
  [[nodiscard]] T qp_window(const Path<T>& path) const {
    return (p[kStageBaseUs] + path.encap_walk + path.decap_walk) / p[kQpWindow];
  }

  /// Payload packets wait for word of earlier ones, over all four walks.
  [[nodiscard]] T loop() const {
    const Path<T> there = request();
    const Path<T> back = answer();
    return (p[kLoopBaseUs] + there.encap_walk + there.decap_walk + back.encap_walk +
            back.decap_walk) /
           p[kLoopPackets];
  }

  /// Turns at the wire that one message takes; each needs the context of its QP.
  [[nodiscard]] double turns() const { return std::ceil(s.packets() / kBurstPackets); }
  [[nodiscard]] T context_misses() const { return miss_in_turn(s.qps, p[kQpContexts]) * turns(); }
  [[nodiscard]] T page_misses() const { return miss_at_random(s.mr_pages, p[kPageEntries]); }

  /// Threads post beside each other; where they share a doorbell register they wait, us.
  [[nodiscard]] T posting_us() const {
    T per_us(0.0);
    for (const PostingClass& c : posting_classes(s.threads, s.qps, s.dedicated_doorbells)) {
      T ns = p[kPostNs];
      if (c.load > 0.0) {
        const T shared = (p[kDoorbellNs] + p[kDoorbellWaitNs] * c.users) * (c.load / s.batch);
        if (shared > ns) ns = shared;
      }
      per_us += c.threads * 1e3 / ns;
    }
    return T(1.0) / per_us;
  }

  /// A work request keeps its slot of the send queue until word of it is back, us.
  [[nodiscard]] T slot_us() const {
    const Path<T> there = request();
    const Path<T> back = answer();
    return (p[kQueueBaseUs] + there.encap_walk + there.decap_walk + back.encap_walk +
            back.decap_walk) *
           (1.0 / (s.qps * s.depth));
  }

  /// Time that one message keeps the slowest part busy, us.
  [[nodiscard]] T message_time_us() const {
    using std::exp;
    using std::log;
    const double n = s.packets();
    const Path<T> path = payload_path();
    const T all_contexts = context_misses();
    T contexts = all_contexts * (1.0 / s.batch);
    T line = T(s.wire_bytes() * 8e-3) / p[kLineGbps];
    if (s.operation == Operation::kSend) line += p[kSendGapNs] * 1e-3;
    enum Part : std::size_t {
      kLine,
      kBus,
      kPosting,
      kMessage,
      kQpUnit,
      kQpWindowed,
      kEncap,
      kDecap,
      kLooping,
      kSlot,
      kFetching,
      kPages,
      kOthers,
      kPartCount
    };
    std::array<T, kPartCount> times = {
        line,
        T(s.bytes * 8e-3 + 1e-9) / p[kPcieGbps],
        T(0.0),  // posting, below
        p[kMessageNs] * 1e-3,
        qp_unit(path) * (n / s.qps),
        qp_window(path) * (n / s.qps),
        encap_stage(path) * n,
        decap_stage(path) * n,
        loop() * n,
        slot_us(),
        T(0.0),  // fetching contexts, below
        page_misses() * p[kPageMissNs] * 1e-3,
        miss_in_turn(s.qps * s.depth, p[kWqeEntries]) * p[kWqeMissNs] * 1e-3 +
            miss_in_turn(s.vxlan_contexts, p[kVxlanContexts]) * p[kVxlanMissNs] * 1e-3,
    };
    const T posting = posting_us();
    const auto fetch = [&] { times[kFetching] = contexts * p[kQpMissNs] * 1e-3; };
    fetch();
    const T miss = contexts * (1.0 / turns());
    if (miss > T(0.0)) {
      // Packets leave in order, so a missing context holds up those behind it: the port idles when
      // any of the few that are on their way misses.
      constexpr double kOnTheirWay = 8.0;
      const T hit = miss < T(1.0) ? T(1.0) - miss : T(1e-9);
      const T stall = T(1.0) + p[kQpStall] * (T(1.0) - exp(kOnTheirWay * log(hit)));
      for (const std::size_t part : {kLine, kBus, kMessage, kEncap, kDecap}) times[part] *= stall;
    }
    if (s.batch > 1.0 && all_contexts > T(0.0)) {
      // A batch needs its context once as long as the NIC keeps up with posting; when it falls
      // behind, QPs take turns one message at a time and each needs it again.
      constexpr double kAbruptness = 16.0;
      const T ratio = posting / smooth_max(times, p[kSharpness]);
      const T behind = T(1.0) / (T(1.0) + exp(kAbruptness * log(ratio)));
      contexts = all_contexts * (behind + (T(1.0) - behind) * (1.0 / s.batch));
      fetch();
    }
    times[kPosting] = posting;
    const T busy = smooth_max(times, p[kSharpness]);
    // Setting up flows keeps the NIC from packets for a share of the time.
    const T stolen = p[kFlowSetupNs] * (1e-9 * s.flow_setup_rate);
    return busy * (T(1.0) + stolen);
  }

  /// Goodput, Gbit/s.
  [[nodiscard]] T bandwidth_gbps() const { return T(s.bytes * 8e-3) / message_time_us(); }

  /// One way through the NICs with `bytes` of payload, beyond the base latency, us.
  [[nodiscard]] T one_way_us(const Path<T>& path, double bytes) const {
    using std::exp;
    using std::log;
    const double n = std::max(1.0, std::ceil(bytes / s.mtu));
    const bool carried = s.operation != Operation::kRead && s.inline_bytes > 0.0;
    const double burst_bytes = kBurstPackets * s.mtu;
    T time = path.encap_walk + path.decap_walk + p[kByteNs] * (std::min(bytes, burst_bytes) * 1e-3);
    if (s.operation == Operation::kRead) {
      if (bytes > 0.0) time += p[kFetchUs];
    } else if (carried) {
      if (bytes > s.inline_bytes) time += p[kFetchUs];
    } else if (bytes > 0.0) {
      constexpr double kAbruptness = 12.0;
      time += p[kFetchUs] / (T(1.0) + exp(kAbruptness * log(p[kInlineBytes] / bytes)));
    }
    if (n <= kBurstPackets) return time;
    // The second burst waits until the first has left the slower stage; packets that come while it
    // waits share the wait, so that late ones wait for half of it on average.
    const T unit = qp_unit(path);
    const T& slower = path.encap_walk > path.decap_walk ? path.encap_walk : path.decap_walk;
    const T hold = p[kBurstGapUs] + slower;
    const T arriving = unit * (n - kBurstPackets);
    const T shared = (arriving < hold ? arriving : hold) * 0.5;
    const T wait = hold - shared;
    // Once the window is full, packets leave at the pace of the slowest part.
    const std::array<T, 6> paces = {unit,
                                    encap_stage(path),
                                    decap_stage(path),
                                    qp_window(path),
                                    loop(),
                                    T((s.mtu + 132.0) * 8e-3) / p[kLineGbps]};
    const T pace = smooth_max(paces, p[kSharpness]);
    const T beyond = T(n) - p[kQpWindow];
    const T backlog = beyond > T(0.0) ? beyond * (pace - unit) : T(0.0);
    return time + arriving + (wait > backlog ? wait : backlog);
  }

  /// Half a round trip of one message with nothing else under way, us. SEND and WRITE tests play
  /// ping-pong, so payload crosses both ways; a READ's payload comes back only.
  [[nodiscard]] T latency_us() const {
    const double there = s.operation == Operation::kRead     ? 0.0
                         : s.operation == Operation::kAtomic ? 8.0
                                                             : s.bytes;
    const double back = s.operation == Operation::kAtomic ? 8.0 : s.bytes;
    return p[kBaseUs + static_cast<int>(s.operation)] +
           median_of(miss_in_turn(s.qps, p[kQpContexts])) * p[kQpWaitUs] +
           median_of(page_misses()) * p[kPageWaitUs] +
           miss_in_turn(s.vxlan_contexts, p[kVxlanContexts]) * p[kVxlanMissNs] * 1e-3 +
           (one_way_us(request(), there) + one_way_us(answer(), back)) * 0.5;
  }
};

/// Natural logarithms of what the law predicts.
enum Output : int { kLogBandwidth, kLogLatency };

/// Value of an output at fitted-scale values.
[[nodiscard]] double evaluate(Output output, const Setting& setting, const Values& fitted_values);

/// The same with d output / d value for each of `active`, written to `gradient`.
double evaluate(Output output, const Setting& setting, const Values& fitted_values,
                std::span<const int> active, std::span<double> gradient);

/// The law at fixed values, set up once for many settings: what fits spend their time on.
class LawAt {
 public:
  /// Gradients are with respect to the `active` fitted values, in their order.
  explicit LawAt(const Values& fitted_values, std::span<const int> active = {});
  LawAt(LawAt&&) noexcept;
  LawAt& operator=(LawAt&&) noexcept;
  ~LawAt();
  [[nodiscard]] double at(Output output, const Setting& setting) const;
  double at(Output output, const Setting& setting, std::span<double> gradient) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The law at fixed values with derivatives along a few fixed directions, set up once for many
/// settings.
class DirectionalLaw {
 public:
  static constexpr int kDirections = 8;
  using Directions = std::array<std::array<double, kDirections>, kParameterCount>;

  /// `directions[j][k]`: how much of fitted value j direction k holds.
  DirectionalLaw(const Values& fitted_values, const Directions& directions);
  DirectionalLaw(DirectionalLaw&&) noexcept;
  DirectionalLaw& operator=(DirectionalLaw&&) noexcept;
  ~DirectionalLaw();

  struct Result {
    double log_value;
    double variance;  ///< sum of squared derivatives
  };
  [[nodiscard]] Result at(Output output, const Setting& setting) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::model::pipeline
