#include "traffic/pingpong.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>

#include "greynic/core/completion_status.h"
#include "traffic/completion_waiter.h"
#include "traffic/payload.h"
#include "traffic/trip_book.h"
#include "traffic/window_binding.h"

namespace greynic::verbs {
namespace {

constexpr std::int64_t kLossLimitNs = 200'000'000;  // far above any answer that is still coming

/// The queue of each lane on one side.
std::vector<ibv_cq*> queues_of(Endpoint& endpoint, CqSide side) {
  std::vector<ibv_cq*> queues;
  for (const Endpoint::Group& group : endpoint.groups()) {
    const CompletionQueue& queue = side == CqSide::kSend ? group.send_cq : group.receive_cq;
    queues.insert(queues.end(), group.lane_count, queue.handle());
  }
  return queues;
}

/// The byte that tells a ping from the one that lay in its slot before: by laps, not by pings, of
/// which each 128th would look like the one it follows when a lane has 128 slots. Odd, and so never
/// what an empty slot holds.
std::byte mark(std::uint64_t lap) { return static_cast<std::byte>(2 * lap + 1); }

constexpr int kSpinsPerLook = 1024;

/// Repeats come() until it is true; each `per_look` times asks give_up(). False when that ended it.
template <typename Come, typename GiveUp>
bool spin(const Come& come, const GiveUp& give_up, std::int64_t limit_ns,
          int per_look = kSpinsPerLook) {
  std::int64_t end = 0;
  for (int spins = 1;; ++spins) {
    if (come()) return true;
    if (spins % per_look != 0) continue;
    const std::int64_t now = now_ns();
    if (end == 0) end = now + limit_ns;
    if (give_up() || now > end) return come();
  }
}

/// Takes one completion of a queue: polls it over and over, or in event modes sleeps by `waiter`.
/// Between polls it does what there is to do `meanwhile`, which may end the wait by true. What
/// ibv_poll_cq said; 0 when the wait ended without one.
template <typename Meanwhile, typename GiveUp>
int take_one(ibv_cq* queue, Waiter& waiter, CompletionMode mode, ibv_wc& completion,
             const Meanwhile& meanwhile, const GiveUp& give_up, std::int64_t limit_ns) {
  int count = 0;
  if (mode == CompletionMode::kPolling) {
    const auto come = [&] {
      return (count = ibv_poll_cq(queue, 1, &completion)) != 0 || meanwhile();
    };
    spin(come, give_up, limit_ns);
  } else {
    spin([&] { return (count = waiter.poll(&completion, 1)) != 0; }, give_up, limit_ns, 1);
  }
  return count;
}

class Pinger {
 public:
  Pinger(Endpoint& endpoint, const std::atomic<bool>& stop)
      : endpoint_(endpoint),
        plan_(endpoint.plan()),
        stop_(stop),
        waiter_(endpoint, 0, CqSide::kReceive),
        receive_queues_(queues_of(endpoint, CqSide::kReceive)),
        limit_ns_(is_reliable(plan_.transport) ? plan_.stall_limit.count() * 1'000'000
                                               : kLossLimitNs),
        lost_by_lane_(plan_.qp_count),
        sender_(endpoint) {
    report_.completed_by_lane.resize(plan_.qp_count);
  }

  RequestReport run(std::chrono::nanoseconds duration) {
    if (plan_.operation == Opcode::kSendWithInv && !bind_all()) return std::move(report_);
    if (plan_.one_sided_answer()) return run_rounds<&Pinger::fetch>(duration);
    return plan_.operation == Opcode::kWrite ? run_rounds<&Pinger::write>(duration)
                                             : run_rounds<&Pinger::send>(duration);
  }

 private:
  /// A round is one ping of a lane and its answer; false when it was lost or the run failed. What
  /// stands between the end of one and the post of the next is part of each latency.
  template <bool (Pinger::*kRound)(std::uint32_t lane)>
  RequestReport run_rounds(std::chrono::nanoseconds duration) {
    QuickClock clock;
    const std::int64_t begin = clock.now_ns();
    const std::int64_t end = begin + duration.count();
    TripBook book(begin + duration.count() / 10, end, plan_.one_sided_answer() ? 1 : 2);
    const double cpu_begin = thread_cpu_seconds();
    const std::uint32_t lanes = plan_.qp_count;
    std::uint32_t lane = 0;
    std::uint64_t laps = 0;  // round the lanes
    // One reading of the clock a ping: the next one starts where this one ends.
    std::int64_t sent = begin;
    while (!stop_.load(std::memory_order_relaxed) && sent < end) {
      const bool answered = (this->*kRound)(lane);
      const std::int64_t back = clock.now_ns();
      const std::uint32_t asked = lane;
      if (++lane == lanes) {
        lane = 0;
        ++laps;
      }
      if (answered) {
        book.note(sent, back);
      } else if (!lose(asked, laps * lanes + lane - 1)) {
        break;
      }
      sent = back;
      if (book.full()) {
        book.enter();
        sent = clock.now_ns();
      }
    }
    book.enter();
    const double cpu_seconds = thread_cpu_seconds() - cpu_begin;
    for (std::uint32_t i = 0; i < lanes; ++i) {
      const std::uint64_t posted = laps + (i < lane ? 1 : 0);
      report_.posted += posted;
      report_.completed += report_.completed_by_lane[i] = posted - lost_by_lane_[i];
    }
    const CompletionBins::Rate rate = book.rate();
    report_.messages_per_second = rate.per_second;
    report_.rate_standard_error = rate.standard_error;
    report_.steady = rate.steady;
    report_.latency = book.latency();
    if (report_.posted > 0) {
      report_.cpu_ns_per_message = cpu_seconds * 1e9 / static_cast<double>(report_.posted);
    }
    return std::move(report_);
  }

  /// A ping of a lane without an answer; false when it ends the run.
  bool lose(std::uint32_t lane, std::uint64_t ping) {
    ++report_.lost;
    ++lost_by_lane_[lane];
    // Without a retransmission RC and its answers would be out of step for ever after.
    if (is_reliable(plan_.transport) && !report_.failure && !stop_) {
      report_.failure = Failure{Outcome::kTimedOut, fmt::format("no answer to ping {} within {} ms",
                                                                ping, plan_.stall_limit.count())};
    }
    return !report_.failure;
  }

  bool fetch(std::uint32_t lane) {
    if (plan_.validate) return fetch_and_check(lane);
    return (sender_.post(lane) && sender_.complete()) || failed();
  }

  bool write(std::uint32_t lane) {
    const std::byte wanted = mark(sender_.next(lane).next_lap());
    const OneByOne::LastBytes last = sender_.last_bytes(lane);
    *last.ours = wanted;
    if (!sender_.post(lane)) return failed();
    const auto come = [&] { return *last.theirs == wanted || ping_failed(); };
    return spin(
               come, [&] { return hopeless(); }, limit_ns_) &&
           !report_.failure && completed();
  }

  bool send(std::uint32_t lane) {
    if (!sender_.post(lane)) return failed();
    if (!replenish()) return false;
    ibv_wc completion;
    const int count = take_one(
        receive_queues_[lane], waiter_, plan_.completion, completion, [&] { return ping_failed(); },
        [&] { return hopeless(); }, limit_ns_);
    if (count == 0) return false;
    if (count < 0 || completion.status != IBV_WC_SUCCESS) {
      return failed(count < 0 ? "ibv_poll_cq failed" : completion_status_name(completion.status));
    }
    taken_ = completion.wr_id;
    if (plan_.operation == Opcode::kSendWithInv) check_key(completion);
    return (receives_per_lane(plan_) > 1 || replenish()) && completed();
  }

  /// Posts the receive that was taken last again: while the next ping travels, unless there is no
  /// other receive for its answer.
  bool replenish() {
    if (!taken_) return true;
    const auto posted_lane = static_cast<std::uint32_t>(*taken_ >> 32);
    const auto slot = static_cast<std::uint32_t>(*taken_);
    taken_.reset();
    if (plan_.operation == Opcode::kSendWithInv && !bind(posted_lane, slot)) return false;
    const int error = endpoint_.post_receive(posted_lane, slot);
    return error == 0 || failed(fmt::format("ibv_post_recv: {}", std::strerror(error)));
  }

  /// SEND_WITH_INV: posts all receives, each behind its window.
  bool bind_all() {
    for (std::uint32_t lane = 0; lane < plan_.qp_count; ++lane) {
      for (std::uint32_t window = 0; window < windows_per_lane(plan_); ++window) {
        taken_ = (std::uint64_t{lane} << 32) | window;
        if (!replenish()) return false;
      }
    }
    return true;
  }
  bool bind(std::uint32_t lane, std::uint32_t window) {
    if (!sender_.complete()) return failed();
    const auto wrong = bind_window(endpoint_, lane, window);
    return !wrong || failed(*wrong);
  }
  void check_key(const ibv_wc& completion) {
    const auto lane = static_cast<std::uint32_t>(completion.wr_id >> 32);
    const auto window = static_cast<std::uint32_t>(completion.wr_id);
    if (completion.invalidated_rkey != endpoint_.window(lane, window).remote_key()) {
      ++report_.payload_errors;
    }
  }

  /// Waits for the ping's own completion, behind its answer.
  bool completed() { return sender_.complete() || failed(); }

  /// Always false, as its callers then are.
  bool failed() {
    report_.failure = sender_.failure();
    return false;
  }
  bool failed(std::string reason) {
    report_.failure = Failure{Outcome::kFailed, std::move(reason)};
    return false;
  }

  /// Takes the ping's own completion while its answer is under way; true when the ping failed.
  bool ping_failed() { return !sender_.look() && !failed(); }

  /// Ends the wait for an answer that cannot come any more.
  bool hopeless() { return ping_failed() || stop_; }

  bool fetch_and_check(std::uint32_t lane) {
    const std::uint64_t ping = sender_.next(lane).next();
    const std::uint32_t bytes = sender_.next(lane).next_bytes();
    if (!sender_.post(lane) || !sender_.complete()) return failed();
    if (!fetched_well(endpoint_, lane, ping, bytes)) ++report_.payload_errors;
    return true;
  }

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  const std::atomic<bool>& stop_;
  Waiter waiter_;
  std::vector<ibv_cq*> receive_queues_;  ///< by lane
  std::int64_t limit_ns_;                ///< for an answer
  std::optional<std::uint64_t> taken_;   ///< wr_id of a receive that is to be posted again
  std::vector<std::uint64_t> lost_by_lane_;
  OneByOne sender_;
  RequestReport report_;
};

}  // namespace

OneByOne::OneByOne(Endpoint& endpoint) : endpoint_(endpoint), waiter_(endpoint, 0, CqSide::kSend) {
  const std::vector<ibv_cq*> queues = queues_of(endpoint, CqSide::kSend);
  for (std::uint32_t lane = 0; lane < endpoint.plan().qp_count; ++lane) {
    std::vector<LastBytes> slots;
    for (const Slot& slot : endpoint.slots(lane)) {
      if (endpoint.plan().operation != Opcode::kWrite) break;
      slots.push_back({endpoint.local(slot).address() + slot.offset,
                       endpoint.target(slot).address() + slot.offset});
    }
    lanes_.push_back({Poster(endpoint, lane), queues[lane], std::move(slots)});
  }
}

bool OneByOne::wait() {
  ibv_wc completion;
  const auto stall = endpoint_.plan().stall_limit;
  const int count = take_one(
      open_, waiter_, endpoint_.plan().completion, completion, [] { return false; },
      [] { return false; }, stall.count() * 1'000'000);
  if (count != 0) return judge(count, completion);
  failure_ = Failure{Outcome::kTimedOut,
                     fmt::format("a message was not completed within {} ms", stall.count())};
  return false;
}

bool OneByOne::fail(int count, const ibv_wc& completion) {
  failure_ = Failure{Outcome::kFailed, count < 0 ? "ibv_poll_cq failed; the device may be gone"
                                                 : completion_status_name(completion.status)};
  return false;
}

bool OneByOne::refuse(int error) {
  failure_ = Failure{Outcome::kFailed, fmt::format("posting: {}", std::strerror(error))};
  return false;
}

RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                        const std::atomic<bool>& stop) {
  return Pinger(endpoint, stop).run(duration);
}

void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report) {
  OneByOne sender(endpoint);
  constexpr std::int64_t kForever = std::int64_t{1} << 60;
  const std::uint32_t lanes = endpoint.plan().qp_count;
  for (std::uint32_t lane = 0; !stop; lane = lane + 1 == lanes ? 0 : lane + 1) {
    const std::byte wanted = mark(sender.next(lane).next_lap());
    const OneByOne::LastBytes last = sender.last_bytes(lane);
    if (!spin([&] { return *last.theirs == wanted || !sender.look(); }, [&] { return stop.load(); },
              kForever)) {
      return;
    }
    if (sender.failure()) break;
    *last.ours = wanted;
    if (!sender.post(lane)) break;
    ++report.received;
  }
  if (!stop) report.failure = sender.failure();
}

}  // namespace greynic::verbs
