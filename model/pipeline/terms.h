#pragma once

/// The terms of the pipeline law, for numbers and for derivatives alike. The derivation stands in
/// docs/models/pipeline.md; names and units in pipeline_parameters.h.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>

#include "data/setting.h"
#include "fitting/tape.h"
#include "pipeline/doorbells.h"
#include "pipeline/law.h"
#include "pipeline/parameters.h"

namespace greynic::model::pipeline {

/// Largest of several positive times; near a tie the terms add up a little, as queues do. `sizes`
/// are the terms' values; only those that matter are asked of `term`, with their derivatives.
template <typename T, std::size_t N, typename Term>
T smooth_max(const std::array<double, N>& sizes, const Term& term, const T& sharpness) {
  using std::exp;
  using std::log;
  const auto top = static_cast<std::size_t>(
      std::distance(sizes.begin(), std::max_element(sizes.begin(), sizes.end())));
  // Terms below this share change nothing that could be measured.
  constexpr double kNegligible = 0.25;
  const T largest = term(top);
  T sum(1.0);
  bool alone = true;
  for (std::size_t k = 0; k < N; ++k) {
    if (k == top || !(sizes[k] > sizes[top] * kNegligible)) continue;
    sum += exp(sharpness * log(term(k) / largest));
    alone = false;
  }
  if (alone) return largest;
  return largest * exp(log(sum) / sharpness);
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

/// What missing contexts cost one message.
template <typename T>
struct Fetching {
  T contexts{0.0};  ///< fetched for it
  T stall{1.0};     ///< packets leave in order: those behind wait
};

/// Parameters in the shown scale, with what follows from them alone.
template <typename T>
struct Prepared {
  std::array<T, kParameterCount> p;
  std::array<T, kOperationCount> encap_us;
  std::array<T, kOperationCount> decap_us;

  explicit Prepared(const std::array<T, kParameterCount>& shown_values) : p(shown_values) {
    using std::exp;
    for (int o = 0; o < static_cast<int>(kOperationCount); ++o) {
      encap_us[static_cast<std::size_t>(o)] = p[kEncapNs] * exp(p[kEncapOfOperation + o]) * 1e-3;
      decap_us[static_cast<std::size_t>(o)] = p[kDecapNs] * exp(p[kDecapOfOperation + o]) * 1e-3;
    }
  }
};

template <typename T>
struct Law {
  const std::array<T, kParameterCount>& p;
  const Setting& s;
  const Law<double>& plain;  ///< the same in plain numbers: tells which terms need derivatives
  double packets;
  Path<T> request;  ///< masks that the way there meets, then the way back
  Path<T> answer;

  Law(const Prepared<T>& values, const Setting& setting, const Law<double>& in_numbers)
      : p(values.p), s(setting), plain(in_numbers), packets(setting.packets()) {
    const auto operation = static_cast<std::size_t>(s.operation);
    const auto path = [&](Hop encap, Hop decap) {
      const double encap_masks = s.masks[static_cast<std::size_t>(encap)];
      const double decap_masks = s.masks[static_cast<std::size_t>(decap)];
      return Path<T>{values.encap_us[operation] * encap_masks,
                     values.decap_us[operation] * decap_masks, encap_masks};
    };
    request = path(Hop::kClientEncap, Hop::kServerDecap);
    answer = path(Hop::kServerEncap, Hop::kClientDecap);
  }
  Law(const Prepared<T>& values, const Setting& setting) requires std::same_as<T, double>
      : Law(values, setting, *this) {}
  Law(const Law&) = delete;
  Law& operator=(const Law&) = delete;

  /// The direction in which payload flows when the traffic is one-way.
  [[nodiscard]] const Path<T>& payload_path() const { return asks() ? answer : request; }

  /// A request of one packet goes the way there, and payload comes back.
  [[nodiscard]] bool asks() const { return s.operation == Operation::kRead; }

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

  [[nodiscard]] T all_walks() const {
    return request.encap_walk + request.decap_walk + answer.encap_walk + answer.decap_walk;
  }

  /// Payload packets wait for word of earlier ones, over all four walks.
  [[nodiscard]] T loop() const { return (p[kLoopBaseUs] + all_walks()) / p[kLoopPackets]; }

  /// Turns at the wire that one message takes; each needs the context of its QP.
  [[nodiscard]] double turns() const { return std::ceil(packets / kBurstPackets); }
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
    return (p[kQueueBaseUs] + all_walks()) * (1.0 / (s.qps * s.depth));
  }

  enum Part : std::size_t {
    kLine,
    kBus,
    kPosting,
    kMessage,
    kQpUnit,
    kQpWindowed,
    kEncap,
    kDecap,
    kRequestEncap,
    kRequestDecap,
    kLooping,
    kSlot,
    kFetching,
    kPages,
    kOthers,
    kPartCount
  };

  /// Time that one message keeps one part busy, us.
  [[nodiscard]] T part_us(std::size_t part, const Fetching<T>& fetching) const {
    const auto stalled = [&](const T& time) {
      return value_of(fetching.stall) > 1.0 ? time * fetching.stall : time;
    };
    switch (part) {
      case kLine: {
        T line = T(s.wire_bytes() * 8e-3) / p[kLineGbps];
        if (s.operation == Operation::kSend) line += p[kSendGapNs] * 1e-3;
        return stalled(line);
      }
      case kBus:
        return stalled(T(s.bytes * 8e-3 + 1e-9) / p[kPcieGbps]);
      case kPosting:
        return posting_us();
      case kMessage:
        return stalled(p[kMessageNs] * 1e-3);
      case kQpUnit:
        return qp_unit(payload_path()) * (packets / s.qps);
      case kQpWindowed:
        return qp_window(payload_path()) * (packets / s.qps);
      case kEncap:
        return stalled(encap_stage(payload_path()) * packets);
      case kDecap:
        return stalled(decap_stage(payload_path()) * packets);
      case kRequestEncap:
        return asks() ? stalled(encap_stage(request)) : T(0.0);
      case kRequestDecap:
        return asks() ? stalled(decap_stage(request)) : T(0.0);
      case kLooping:
        return loop() * packets;
      case kSlot:
        return slot_us();
      case kFetching:
        return fetching.contexts * p[kQpMissNs] * 1e-3;
      case kPages:
        return page_misses() * p[kPageMissNs] * 1e-3;
      default:
        return miss_in_turn(s.qps * s.depth, p[kWqeEntries]) * p[kWqeMissNs] * 1e-3 +
               miss_in_turn(s.vxlan_contexts, p[kVxlanContexts]) * p[kVxlanMissNs] * 1e-3;
    }
  }

  [[nodiscard]] std::array<double, kPartCount> sizes_of_parts(
      const Fetching<double>& fetching) const {
    std::array<double, kPartCount> sizes;
    for (std::size_t k = 0; k < kPartCount; ++k) sizes[k] = plain.part_us(k, fetching);
    return sizes;
  }

  /// Time that one message keeps the slowest part busy, us.
  [[nodiscard]] T message_time_us() const {
    using std::exp;
    using std::log;
    Fetching<T> fetching;
    const auto rough = [&] {
      return Fetching<double>{value_of(fetching.contexts), value_of(fetching.stall)};
    };
    const auto part = [&](std::size_t k) { return part_us(k, fetching); };
    const T all_contexts = context_misses();
    if (all_contexts > T(0.0)) {
      fetching.contexts = all_contexts * (1.0 / s.batch);
      // The port idles when any of the few packets that are on their way misses its context.
      constexpr double kOnTheirWay = 8.0;
      const T miss = fetching.contexts * (1.0 / turns());
      const T hit = miss < T(1.0) ? T(1.0) - miss : T(1e-9);
      fetching.stall = T(1.0) + p[kQpStall] * (T(1.0) - exp(kOnTheirWay * log(hit)));
    }
    auto sizes = sizes_of_parts(rough());
    if (s.batch > 1.0 && all_contexts > T(0.0)) {
      // A batch needs its context once as long as the NIC keeps up with posting; when it falls
      // behind, QPs take turns one message at a time and each needs it again.
      constexpr double kAbruptness = 16.0;
      sizes[kPosting] = 0.0;
      const T ratio = posting_us() / smooth_max(sizes, part, p[kSharpness]);
      const T behind = T(1.0) / (T(1.0) + exp(kAbruptness * log(ratio)));
      fetching.contexts = all_contexts * (behind + (T(1.0) - behind) * (1.0 / s.batch));
      sizes = sizes_of_parts(rough());
    }
    const T busy = smooth_max(sizes, part, p[kSharpness]);
    if (s.flow_setup_rate <= 0.0) return busy;
    // Setting up flows keeps the NIC from packets for a share of the time.
    return busy * (T(1.0) + p[kFlowSetupNs] * (1e-9 * s.flow_setup_rate));
  }

  static constexpr std::size_t kPaceCount = 6;

  /// Time for which each part of the way holds one packet, us.
  [[nodiscard]] T pace_us(std::size_t part, const Path<T>& path) const {
    switch (part) {
      case 0:
        return qp_unit(path);
      case 1:
        return encap_stage(path);
      case 2:
        return decap_stage(path);
      case 3:
        return qp_window(path);
      case 4:
        return loop();
      default:
        return T((s.mtu + 132.0) * 8e-3) / p[kLineGbps];
    }
  }

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
    // The second burst waits until the first has left the slower stage, or for a part of that; packets that come
    // while it waits share the wait, so that late ones wait for half of it on average.
    const T unit = qp_unit(path);
    const T& slower = path.encap_walk > path.decap_walk ? path.encap_walk : path.decap_walk;
    const T hold = p[kBurstGapUs] + p[kBurstWalk] * slower;
    const T arriving = unit * (n - kBurstPackets);
    const T shared = (arriving < hold ? arriving : hold) * 0.5;
    const T wait = hold - shared;
    T backlog(0.0);
    const T beyond = T(n) - p[kQpWindow];
    if (beyond > T(0.0)) {
      // Once the window is full, packets leave at the pace of the slowest part.
      std::array<double, kPaceCount> sizes;
      for (std::size_t k = 0; k < kPaceCount; ++k) {
        sizes[k] = plain.pace_us(
            k, {value_of(path.encap_walk), value_of(path.decap_walk), path.encap_masks});
      }
      const auto pace_of = [&](std::size_t k) { return pace_us(k, path); };
      backlog = beyond * (smooth_max(sizes, pace_of, p[kSharpness]) - unit);
    }
    return time + arriving + (wait > backlog ? wait : backlog);
  }

  /// Goodput, Gbit/s.
  [[nodiscard]] T bandwidth_gbps() const { return T(s.bytes * 8e-3) / message_time_us(); }

  /// Of one message with nothing else under way, us: half a round trip of SENDs and WRITEs, whose tests play
  /// ping-pong, so that payload crosses both ways; the whole of a READ or an atomic, which are a round trip themselves.
  [[nodiscard]] T latency_us() const {
    const double there = s.operation == Operation::kRead     ? 0.0
                         : s.operation == Operation::kAtomic ? 8.0
                                                             : s.bytes;
    const double back = s.operation == Operation::kAtomic ? 8.0 : s.bytes;
    const bool asks = s.operation == Operation::kRead || s.operation == Operation::kAtomic;
    const T half = p[kBaseUs + static_cast<int>(s.operation)] +
                   median_of(miss_in_turn(s.qps, p[kQpContexts])) * p[kQpWaitUs] +
                   median_of(page_misses()) * p[kPageWaitUs] +
                   miss_in_turn(s.vxlan_contexts, p[kVxlanContexts]) * p[kVxlanMissNs] * 1e-3 +
                   (one_way_us(request, there) + one_way_us(answer, back)) * 0.5;
    return half * (asks ? 2.0 : 1.0);
  }
};

}  // namespace greynic::model::pipeline
