#pragma once

/// What a receiver says of whole messages, and what becomes of that when the wire corrupts it. An
/// acknowledgement speaks for all messages before it, so one that is lost costs nothing while
/// others follow. When none does, the requester's timer runs out and it sends the oldest message
/// that it knows nothing of once more; the receiver has it, throws it away and acknowledges again.
/// Word of that is back before a second packet of it would matter, so only its first packet is
/// sent. A NAK is sent once: when it is lost, the requester's timer heals the gap (recovery.h).
///
/// Needs: the world, the path, and what each stream's recovery remembers.
/// Gives: kCompleted events, and whether something has to be sent again.

#include <cstdint>

#include "parts/path.h"
#include "parts/recovery.h"
#include "parts/world.h"

namespace greynic::twin {

class Answers {
 public:
  Answers(World& world, Path& path, Recovery& recovery)
      : world_(world), path_(path), recovery_(recovery) {}

  /// The receiver has `count` messages more than when it spoke last.
  void acknowledge(std::uint32_t stream, std::uint32_t count, Time t);
  /// Starts the requester's timer.
  void watch(std::uint32_t stream, Time t);

  enum class Silence : std::uint8_t {
    kOver,       ///< it has heard something, or its QP has failed
    kGap,        ///< it waits for what heals a gap: watch
    kSendAgain,  ///< send_again the oldest message, and watch
  };
  /// Event kUnanswered: `answers` is how many it had heard when the timer was started.
  [[nodiscard]] Silence unanswered(std::uint32_t stream, std::uint32_t answers);
  /// The first packet of the oldest message that the requester knows nothing of. The receiver has
  /// it. Counts it as sent again; the caller lets it travel, with the fate that is drawn here.
  struct Again {
    const Freight* freight;
    Fate fate;
  };
  [[nodiscard]] Again send_again(std::uint32_t stream);

 private:
  World& world_;
  Path& path_;
  Recovery& recovery_;
};

}  // namespace greynic::twin
