#pragma once

/// Latency mode: one message in flight, lanes in turn. In event modes the wait for a completion is
/// asleep; what a WRITE left in memory raises no event and is always watched for.

#include <optional>
#include <vector>

#include "greynic/verbs/traffic.h"
#include "poster.h"
#include "waiting.h"

namespace greynic::verbs {

[[nodiscard]] RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                                      const std::atomic<bool>& stop);

/// The answering half of WRITE pings: watches the last byte of each lane's buffer in turn and
/// writes it back. SEND pings are answered by the receiver's loop.
void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report);

/// Sends signalled messages one at a time. The completion is looked for while the answer is under
/// way, and waited for only when that has come or before the next message: to wait for it first
/// would add the acknowledgement to every latency.
class OneByOne {
 public:
  explicit OneByOne(Endpoint& endpoint);
  // Each is false once something failed: failure() says what. By values that are tested and not
  // made, because a ping passes here often.

  /// Posts after the former message is completed.
  [[nodiscard]] bool post(std::uint32_t lane, std::uint64_t message);
  /// Waits for the completion of what was posted last, at most for the plan's stall limit.
  [[nodiscard]] bool complete() { return open_ == nullptr || wait(); }
  /// Takes that completion if it is there.
  [[nodiscard]] bool look() { return open_ == nullptr || take(); }

  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  /// Of the message that a lane posts next: where it lies, how often its lane has been round its
  /// slots before, and its length.
  [[nodiscard]] const Slot& next_slot(std::uint32_t lane) const {
    return endpoint_.slots(lane)[posters_[lane].next_slot()];
  }
  [[nodiscard]] std::uint64_t next_lap(std::uint32_t lane) const {
    return posters_[lane].next_lap();
  }
  [[nodiscard]] std::uint32_t next_bytes(std::uint32_t lane) const {
    return posters_[lane].next_bytes();
  }

 private:
  bool wait();
  bool take();
  bool judge(int count, const ibv_wc& completion);

  Endpoint& endpoint_;
  Waiter waiter_;
  std::vector<Poster> posters_;
  std::vector<ibv_cq*> queues_;  ///< by lane
  ibv_cq* open_ = nullptr;       ///< where the completion will come; null when none is due
  std::optional<Failure> failure_;
};

}  // namespace greynic::verbs
