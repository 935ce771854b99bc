#pragma once

/// Connections that share QPs, as a program on the fabric: each connection has memory, work and a
/// place in the queue of its own, each thread serves its connections, and threads that share a QP
/// pass its lock. A passing thread posts and polls, and its requests take what SMART measured of
/// both under contention (`qp_lock_ns` and `qp_contention_ns`, item 8).

#include <cstdint>
#include <string>

#include "greynic/twin/fabric.h"

namespace greynic::twin {

struct SharedQps {
  std::uint32_t connection_count = 1;
  std::uint32_t qp_count = 16;  ///< at most; connection c has QP c % qp_count
  std::uint32_t threads_per_qp = 1;
  std::uint64_t message_bytes = 65536;  ///< of a READ; each connection has one open
  std::uint32_t send_depth = 128;       ///< 1: who has the lock keeps it until the READ is complete
};

struct SharedRate {
  double gbps = 0;
  double messages_per_second = 0;
};

/// READs between two hosts with this RNIC (a model's name, or a file), without overlay.
[[nodiscard]] SharedRate rate_of(const SharedQps& load, const std::string& rnic,
                                 std::uint64_t seed);

}  // namespace greynic::twin
