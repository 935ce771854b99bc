#pragma once

/// Latency mode: one message in flight, lanes in turn. In event modes the thread sleeps until a
/// completion comes. A WRITE that arrives raises no event, so memory is always watched for it.

#include <optional>
#include <vector>

#include "greynic/verbs/traffic.h"
#include "traffic/completion_waiter.h"
#include "traffic/poster.h"

namespace greynic::verbs {

[[nodiscard]] RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                                      const std::atomic<bool>& stop);

/// The answering half of WRITE pings: watches the last byte of each lane's buffer in turn and
/// writes it back. SEND pings are answered by the receiver's loop.
void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report);

/// Sends signalled messages one at a time. It looks for the completion while the answer is under
/// way, and waits for it only after the answer or before the next message. Waiting for it first
/// would add the acknowledgement to every latency.
class OneByOne {
 public:
  explicit OneByOne(Endpoint& endpoint);
  // Each is false once something failed; failure() says what. They return bool and not Result,
  // because every ping passes here.

  /// Posts the next message of a lane after the former message is completed.
  [[nodiscard]] bool post(std::uint32_t lane) {
    if (open_ != nullptr && !complete()) return false;
    if (const int error = lanes_[lane].poster.post(1, true)) return refuse(error);
    open_ = lanes_[lane].queue;
    return true;
  }
  /// Waits for the completion of what was posted last, at most for the plan's stall limit.
  [[nodiscard]] bool complete() { return look() && (open_ == nullptr || wait()); }
  /// Takes that completion if it is there.
  [[nodiscard]] bool look() {
    if (open_ == nullptr) return true;
    ibv_wc completion;
    const int count = ibv_poll_cq(open_, 1, &completion);
    return count == 0 || judge(count, completion);
  }
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }

  /// The message that a lane posts next.
  [[nodiscard]] const Poster& next(std::uint32_t lane) const { return lanes_[lane].poster; }
  /// WRITE: where its last byte lies at this end, and where that of the other end's message will.
  struct LastBytes {
    std::byte* ours;
    const volatile std::byte* theirs;  ///< the device writes it behind the compiler's back
  };
  [[nodiscard]] LastBytes last_bytes(std::uint32_t lane) const {
    const Lane& it = lanes_[lane];
    const LastBytes& slot = it.slots[it.poster.next_slot()];
    const std::size_t last = it.poster.next_bytes() - std::size_t{1};
    return {slot.ours + last, slot.theirs + last};
  }

 private:
  struct Lane {
    Poster poster;
    ibv_cq* queue;
    std::vector<LastBytes> slots;  ///< of messages of one byte
  };

  bool judge(int count, const ibv_wc& completion) {
    open_ = nullptr;
    return (count > 0 && completion.status == IBV_WC_SUCCESS) || fail(count, completion);
  }
  bool wait();
  bool fail(int count, const ibv_wc& completion);
  bool refuse(int error);

  Endpoint& endpoint_;
  Waiter waiter_;
  std::vector<Lane> lanes_;
  ibv_cq* open_ = nullptr;  ///< where the completion will come; null when none is due
  std::optional<Failure> failure_;
};

}  // namespace greynic::verbs
