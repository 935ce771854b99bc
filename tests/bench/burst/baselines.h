#pragma once

/// What others do about bursts, over the complete log of one queue: each says of every packet
/// whether it would be named, and how many bytes it exports.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "greynic/burst/flow_key.h"
#include "greynic/statistics/random.h"

namespace greynic::bench {

struct Logged {
  burst::FlowKey flow;
  std::uint32_t bytes = 0;
  double enqueued = 0, dequeued = 0;
  std::uint64_t depth = 0;  ///< at enqueue, its own bytes among them
};
using Log = std::vector<Logged>;

struct Named {
  std::vector<bool> packets;
  std::uint64_t exported_bytes = 0;
};

constexpr std::uint64_t kRecordBytes = 29;

/// Brute force: depths counted again from times.
inline std::vector<bool> oracle(const Log& log, std::uint64_t threshold) {
  std::vector<bool> took_part(log.size());
  for (std::size_t i = 0; i < log.size(); ++i) {
    std::uint64_t depth = log[i].bytes;
    std::size_t first = i;
    while (first > 0 && log[first - 1].dequeued > log[i].enqueued) depth += log[--first].bytes;
    if (depth <= threshold) continue;
    for (std::size_t j = first; j <= i; ++j) took_part[j] = true;
  }
  return took_part;
}

/// In-band telemetry on every packet.
inline Named every_packet(const Log& log) {
  return {std::vector<bool>(log.size(), true), log.size() * kRecordBytes};
}

inline Named sampled(const Log& log, std::uint32_t one_in) {
  Named out{std::vector<bool>(log.size()), 0};
  statistics::Random random(1);
  for (std::size_t i = 0; i < log.size(); ++i) {
    out.packets[i] = random.below(one_in) == 0;
    out.exported_bytes += out.packets[i] ? kRecordBytes : 0;
  }
  return out;
}

/// ConQuest: `kSnapshots` count-min sketches in turn, each of `kWindowNs`. A packet is named when the
/// queue was over the threshold when it came, and the snapshots of its stay give its flow at least a
/// hundredth of that depth. It exports what it names, since it acts in the switch.
inline Named conquest(const Log& log, std::uint64_t threshold) {
  constexpr std::size_t kSnapshots = 4, kRows = 2, kColumns = 2048;
  constexpr double kWindowNs = 16384;
  static std::array<std::array<std::array<std::uint64_t, kColumns>, kRows>, kSnapshots> sketch;
  sketch = {};
  std::int64_t current = 0;
  Named out{std::vector<bool>(log.size()), 0};
  for (std::size_t i = 0; i < log.size(); ++i) {
    const auto window = static_cast<std::int64_t>(log[i].dequeued / kWindowNs);
    for (; current < window; ++current)
      sketch[static_cast<std::size_t>(current + 1) % kSnapshots] = {};
    const std::uint64_t hash = log[i].flow.hash();
    const auto column = [&](std::size_t row) {
      return statistics::split_mix(hash + row) % kColumns;
    };
    // It sees depth when a packet leaves, and reads the snapshots back to when the packet came.
    if (log[i].depth > threshold) {
      const auto back = static_cast<std::int64_t>(log[i].enqueued / kWindowNs);
      std::uint64_t bytes = 0;
      for (std::int64_t w = std::max(back, window - static_cast<std::int64_t>(kSnapshots) + 2);
           w <= window; ++w) {
        std::uint64_t least = UINT64_MAX;
        for (std::size_t row = 0; row < kRows; ++row) {
          least =
              std::min(least, sketch[static_cast<std::size_t>(w) % kSnapshots][row][column(row)]);
        }
        bytes += least;
      }
      out.packets[i] = (bytes + log[i].bytes) * 100 >= log[i].depth;
      out.exported_bytes += out.packets[i] ? kRecordBytes : 0;
    }
    for (std::size_t row = 0; row < kRows; ++row) {
      sketch[static_cast<std::size_t>(window) % kSnapshots][row][column(row)] += log[i].bytes;
    }
  }
  return out;
}

/// Millisampler: bytes in buckets; the packets of a bucket that used more than half of the link are
/// named. 64 bytes a bucket: time, bytes in and out, a sketch of flows, marks, retransmits.
inline Named buckets(const Log& log, double bucket_ns, double gbps) {
  Named out{std::vector<bool>(log.size()), 0};
  std::map<std::int64_t, std::uint64_t> bytes;
  const auto bucket = [&](const Logged& one) {
    return static_cast<std::int64_t>(one.dequeued / bucket_ns);
  };
  for (const Logged& one : log) bytes[bucket(one)] += one.bytes;
  for (std::size_t i = 0; i < log.size(); ++i) {
    out.packets[i] = static_cast<double>(bytes[bucket(log[i])]) * 8 > 0.5 * gbps * bucket_ns;
  }
  if (!log.empty()) out.exported_bytes = static_cast<std::uint64_t>(bucket(log.back()) + 1) * 64;
  return out;
}

}  // namespace greynic::bench
