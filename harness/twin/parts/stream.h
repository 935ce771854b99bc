#pragma once

/// One direction of one QP on one RNIC: what a processing unit works on.

#include <cstdint>

#include "stages/stage.h"

namespace greynic::twin {

inline constexpr std::uint32_t kNone = ~0U;

/// One line of the CPU's cache, so that a turn on one of very many QPs costs one miss, and that one
/// is prefetched. The counts say how far its messages have come: each is at most the one before.
struct alignas(64) Stream {
  std::uint32_t next = kNone;       ///< in its unit's ring
  std::uint32_t next_free = kNone;  ///< in its thread's list of streams with a free slot
  std::uint32_t ready = 0;          ///< messages whose data is at hand
  std::uint32_t posted = 0, fetched = 0, handled = 0, sent = 0, done = 0, credited = 0;
  std::uint32_t receives = 0;  ///< receive WQEs at the other end
  std::uint32_t thread = kNone;
  std::uint32_t packets_left = 0;  ///< of the message that is being sent
  // No bit fields: what was written as part of a word takes the CPU long to read back as a whole.
  std::uint8_t nic = 0;   ///< where it is sent
  std::uint8_t to = 1;    ///< where it is received
  bool responds = false;  ///< sends what the other RNIC asked for
  bool in_ring = false;
  bool in_free_list = false;
  bool resting = false;  ///< nothing is sent: its QP waits for a timer, or has failed
  Time not_before = 0;   ///< its next turn: until then QP context or payload is being fetched
};
static_assert(sizeof(Stream) == 64);

}  // namespace greynic::twin
