#pragma once

/// What the core decided for a piece of a stream, with what it knew: by which verb and lane it went,
/// and where its bytes lay. The last ones are kept, so that a choice can be looked up and not only
/// counted.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "greynic/broker/device.h"

namespace greynic::broker {

/// How busy a host is, 0 to 1: its processors; how far it is into the last fifth of its memory.
struct Load {
  double processor = 0, memory = 0;
};

struct Decision {
  enum class Why : std::uint8_t {
    kSmall,  ///< it fits a receive, so it is SENT
    kAsked,  ///< the application named the verb
    kLoad,   ///< by the loads of both ends
  };
  enum class From : std::uint8_t {
    kRing,        ///< the application copied it
    kSegment,     ///< memory of its segment, registered when it attached
    kReused,      ///< lent memory that was registered before
    kRegistered,  ///< lent memory, registered for this send
  };
  std::uint64_t number = 0;  ///< counts all decisions, from 1
  std::uint32_t connection = 0, peer = 0;
  std::uint64_t bytes = 0, waiting = 0;  ///< of the piece; of the connection when it had its turn
  Verb verb = Verb::kSend;
  Why why = Why::kSmall;
  From from = From::kRing;
  Load own, far;              ///< when the loads were last compared
  bool prefers_read = false;  ///< what they had decided by then: the state of the hysteresis
  bool bulk = false;          ///< the class of the lane
  std::uint16_t lane = 0;
  QpNumber qp = 0;
};

/// The last decisions.
class DecisionLog {
 public:
  static constexpr std::size_t kKept = 256;
  void add(Decision decision) {
    decision.number = ++count_;
    kept_[count_ % kKept] = decision;
  }
  /// The oldest comes first.
  [[nodiscard]] std::vector<Decision> list() const {
    std::vector<Decision> all;
    const std::uint64_t first = count_ < kKept ? 1 : count_ - kKept + 1;
    for (std::uint64_t number = first; number <= count_; ++number) {
      all.push_back(kept_[number % kKept]);
    }
    return all;
  }

 private:
  std::array<Decision, kKept> kept_;
  std::uint64_t count_ = 0;
};

}  // namespace greynic::broker
