#pragma once

/// Frames and capture files, byte by byte, by code that shares nothing with the readers; and an
/// oracle that counts a queue again from the definition.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "greynic/statistics/random.h"

namespace greynic::burst {

struct Arrival {
  std::uint64_t time_ns = 0;
  std::uint32_t bytes = 0;
  std::uint32_t flow = 0;
};

/// What an oracle says of each packet.
struct Truth {
  bool took_part = false;
  double leaves_ns = 0.0;
  std::uint64_t depth_at_arrival = 0;
};

/// Times in units of 8e9 / rate nanoseconds would be whole numbers of bytes; here all is multiplied
/// by the rate instead: one nanosecond is `rate` units, one byte 8e9. Quadratic on purpose.
inline std::vector<Truth> truth_of(const std::vector<Arrival>& arrivals, std::uint64_t rate,
                                   std::uint64_t threshold) {
  __extension__ using Wide = unsigned __int128;
  std::vector<Truth> truth(arrivals.size());
  std::vector<Wide> arrives(arrivals.size()), leaves(arrivals.size());
  Wide free = 0;
  std::uint64_t latest = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    latest = std::max(latest, arrivals[i].time_ns);
    arrives[i] = Wide{latest} * rate;
    free = std::max(free, arrives[i]) + Wide{arrivals[i].bytes} * 8'000'000'000ULL;
    leaves[i] = free;
    truth[i].leaves_ns = static_cast<double>(leaves[i] / rate);
    std::uint64_t depth = 0;
    for (std::size_t j = i + 1; j-- > 0 && leaves[j] > arrives[i];) depth += arrivals[j].bytes;
    truth[i].depth_at_arrival = depth;
    if (depth <= threshold) continue;
    for (std::size_t j = i + 1; j-- > 0 && leaves[j] > arrives[i];) truth[j].took_part = true;
  }
  return truth;
}

/// Idle times and trains, many of them at equal times.
inline std::vector<Arrival> random_arrivals(std::size_t count, std::uint64_t rate,
                                            statistics::Random& random) {
  std::vector<Arrival> all;
  const double byte_ns = 8e9 / static_cast<double>(rate);
  double time = static_cast<double>(random.below(1000));
  while (all.size() < count) {
    const std::uint32_t train = 1 + random.below(random.below(4) == 0 ? 60 : 6);
    const double speed = 0.3 + 3.0 * random.uniform();
    for (std::uint32_t i = 0; i < train && all.size() < count; ++i) {
      const std::uint32_t bytes = random.below(3) == 0 ? 64 : 1 + random.below(1514);
      all.push_back({static_cast<std::uint64_t>(time), bytes, random.below(9)});
      if (random.below(4) != 0) time += bytes * byte_ns / speed;
    }
    if (random.below(2) == 0) time += random.exponential(3000.0 * byte_ns);
  }
  return all;
}

// ---- frames

inline void put16(std::string& out, std::uint32_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}

/// IPv4 over UDP from 10.0.0.(flow+1):1000+flow to 10.0.0.200:80, in Ethernet with so many tags.
inline std::string udp_frame(std::uint32_t flow, std::size_t tags = 0) {
  std::string frame(12, '\2');
  for (std::size_t i = 0; i < tags; ++i) {
    put16(frame, i + 1 < tags ? 0x88a8 : 0x8100);
    put16(frame, 5);
  }
  put16(frame, 0x0800);
  frame += std::string("\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0", 15);
  frame += static_cast<char>(flow + 1);
  frame += std::string("\x0a\0\0\xc8", 4);
  put16(frame, 1000 + flow);
  put16(frame, 80);
  put16(frame, 8);
  put16(frame, 0);
  return frame;
}

// ---- capture files, little endian

inline void little(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

inline std::string pcap_file(const std::vector<Arrival>& arrivals, bool nanoseconds,
                             std::size_t snap = 65535, std::uint64_t origin_ns = 0) {
  std::string out;
  little(out, nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 4);
  little(out, 2, 2);
  little(out, 4, 2);
  little(out, 0, 8);
  little(out, snap, 4);
  little(out, 1, 4);
  for (const Arrival& arrival : arrivals) {
    const std::string frame =
        udp_frame(arrival.flow).substr(0, std::min<std::size_t>(snap, arrival.bytes));
    const std::uint64_t time = origin_ns + arrival.time_ns;
    little(out, time / 1'000'000'000, 4);
    little(out, time % 1'000'000'000 / (nanoseconds ? 1 : 1000), 4);
    little(out, frame.size(), 4);
    little(out, arrival.bytes, 4);
    out += frame;
  }
  return out;
}

inline void block(std::string& out, std::uint32_t type, std::string body) {
  while (body.size() % 4 != 0) body += '\0';
  little(out, type, 4);
  little(out, body.size() + 12, 4);
  out += body;
  little(out, body.size() + 12, 4);
}

/// Interfaces that count in microseconds, nanoseconds and 2^-30 s, in turn.
inline std::string pcapng_file(const std::vector<Arrival>& arrivals, std::uint64_t origin_ns) {
  std::string out, body;
  little(body, 0x1a2b3c4d, 4);
  little(body, 1, 2);
  little(body, 0, 2);
  little(body, UINT64_MAX, 8);
  block(out, 0x0a0d0d0a, body);
  for (const int resolution : {6, 9, 0x80 | 30}) {
    body.clear();
    little(body, 1, 2);
    little(body, 0, 2);
    little(body, 65535, 4);
    little(body, 9, 2);
    little(body, 1, 2);
    little(body, static_cast<std::uint64_t>(resolution), 4);
    little(body, 0, 4);
    block(out, 1, body);
  }
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const std::string frame =
        udp_frame(arrivals[i].flow).substr(0, std::min<std::size_t>(65535, arrivals[i].bytes));
    const std::uint64_t ns = origin_ns + arrivals[i].time_ns;
    const std::uint64_t seconds = ns / 1'000'000'000, rest = ns % 1'000'000'000;
    const std::uint64_t stamps[] = {ns / 1000, ns,
                                    (seconds << 30) + ((rest << 30) + 999'999'999) / 1'000'000'000};
    const std::uint64_t stamp = stamps[i % 3];
    body.clear();
    little(body, i % 3, 4);
    little(body, stamp >> 32, 4);
    little(body, stamp & 0xffffffff, 4);
    little(body, frame.size(), 4);
    little(body, arrivals[i].bytes, 4);
    block(out, 6, body + frame);
  }
  return out;
}

}  // namespace greynic::burst
