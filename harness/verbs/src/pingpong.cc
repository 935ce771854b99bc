#include "pingpong.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>

#include "greynic/core/completion_status.h"
#include "payload.h"
#include "trip_book.h"
#include "waiting.h"

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
/// which each 255th would look like the one it follows when a lane has 255 slots.
std::byte mark(std::uint64_t lap) { return static_cast<std::byte>(lap % 255 + 1); }

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

/// Volatile: the device writes it behind the compiler's back.
bool holds_mark(const std::byte* place, std::byte wanted) {
  return *reinterpret_cast<const volatile std::byte*>(place) == wanted;
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
        sender_(endpoint) {
    report_.completed_by_lane.resize(plan_.qp_count);
  }

  RequestReport run(std::chrono::nanoseconds duration) {
    const std::int64_t begin = now_ns();
    const std::int64_t end = begin + duration.count();
    TripBook book(begin + duration.count() / 10, end, plan_.one_sided_answer() ? 1 : 2);
    const double cpu_begin = thread_cpu_seconds();
    // One reading of the clock a ping: the next one starts where this one ends.
    std::int64_t sent = begin;
    std::uint32_t lane = 0;
    std::uint64_t ping = 0;  // of that lane
    while (!stop_ && !report_.failure && sent < end) {
      const bool answered = round(lane, ping);
      const std::int64_t back = now_ns();
      ++report_.posted;
      if (answered) {
        ++report_.completed;
        ++report_.completed_by_lane[lane];
        book.note(sent, back);
      } else {
        ++report_.lost;
        // Without a retransmission RC and its answers would be out of step for ever after.
        if (is_reliable(plan_.transport) && !report_.failure && !stop_) {
          report_.failure = Failure{Outcome::kTimedOut,
                                    fmt::format("no answer to ping {} within {} ms",
                                                report_.posted - 1, plan_.stall_limit.count())};
        }
      }
      if (++lane == plan_.qp_count) {
        lane = 0;
        ++ping;
      }
      sent = back;
      if (book.full()) {
        book.enter();
        sent = now_ns();
      }
    }
    book.enter();
    const Slices::Rate rate = book.rate();
    report_.messages_per_second = rate.per_second;
    report_.rate_standard_error = rate.standard_error;
    report_.steady = rate.steady;
    report_.latency = book.latency();
    if (report_.posted > 0) {
      report_.cpu_ns_per_message =
          (thread_cpu_seconds() - cpu_begin) * 1e9 / static_cast<double>(report_.posted);
    }
    return std::move(report_);
  }

 private:
  /// One ping and its answer; false when it was lost or the run failed.
  bool round(std::uint32_t lane, std::uint64_t ping) {
    if (plan_.one_sided_answer()) return fetch(lane, ping);
    const bool answered =
        plan_.operation == Operation::kWrite ? write(lane, ping) : send(lane, ping);
    return answered && (sender_.complete() || failed());
  }

  bool fetch(std::uint32_t lane, std::uint64_t ping) {
    const Slot& slot = sender_.next_slot(lane);
    const std::uint32_t bytes = sender_.next_bytes(lane);
    if (!sender_.post(lane, ping) || !sender_.complete()) return failed();
    if (plan_.validate) check_answer(lane, ping, slot, bytes);
    return true;
  }

  bool write(std::uint32_t lane, std::uint64_t ping) {
    const Slot& slot = sender_.next_slot(lane);
    const std::uint64_t last = slot.offset + sender_.next_bytes(lane) - 1;
    const std::byte wanted = mark(sender_.next_lap(lane));
    const std::byte* const place = endpoint_.target(slot).address() + last;
    endpoint_.local(slot).address()[last] = wanted;
    if (!sender_.post(lane, ping)) return failed();
    const auto come = [&] { return holds_mark(place, wanted) || ping_failed(); };
    return spin(
               come, [&] { return hopeless(); }, limit_ns_) &&
           !report_.failure;
  }

  bool send(std::uint32_t lane, std::uint64_t ping) {
    if (!sender_.post(lane, ping)) return failed();
    if (!replenish()) return false;
    ibv_wc completion{};
    const int count = take_one(
        receive_queues_[lane], waiter_, plan_.completion, completion, [&] { return ping_failed(); },
        [&] { return hopeless(); }, limit_ns_);
    if (count == 0) return false;
    if (count < 0 || completion.status != IBV_WC_SUCCESS) {
      return failed(count < 0 ? "ibv_poll_cq failed" : completion_status_name(completion.status));
    }
    taken_ = completion.wr_id;
    return plan_.receive_depth > 1 || replenish();
  }

  /// Posts the receive that was taken last again: while the next ping travels, unless there is no
  /// other receive for its answer.
  bool replenish() {
    if (!taken_) return true;
    const auto posted_lane = static_cast<std::uint32_t>(*taken_ >> 32);
    const auto slot = static_cast<std::uint32_t>(*taken_);
    taken_.reset();
    const int error = endpoint_.post_receive(posted_lane, slot);
    return error == 0 || failed(fmt::format("ibv_post_recv: {}", std::strerror(error)));
  }

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

  void check_answer(std::uint32_t lane, std::uint64_t ping, const Slot& slot, std::uint32_t bytes) {
    const auto landed = endpoint_.local(slot).bytes().subspan(slot.offset, bytes);
    if (is_atomic(plan_.operation)) {
      std::uint64_t found = 0;
      std::memcpy(&found, landed.data(), sizeof found);
      if (found != ping) ++report_.payload_errors;
      return;
    }
    const auto index = static_cast<std::uint32_t>(ping % endpoint_.slots(lane).size());
    if (!payload_matches(landed, plan_.seed, lane, index)) ++report_.payload_errors;
    spoil_payload(landed);
  }

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  const std::atomic<bool>& stop_;
  Waiter waiter_;
  std::vector<ibv_cq*> receive_queues_;  ///< by lane
  std::int64_t limit_ns_;                ///< for an answer
  std::optional<std::uint64_t> taken_;   ///< wr_id of a receive that is to be posted again
  OneByOne sender_;
  RequestReport report_;
};

}  // namespace

OneByOne::OneByOne(Endpoint& endpoint)
    : endpoint_(endpoint),
      waiter_(endpoint, 0, CqSide::kSend),
      queues_(queues_of(endpoint, CqSide::kSend)) {
  for (std::uint32_t lane = 0; lane < endpoint.plan().qp_count; ++lane) {
    posters_.emplace_back(endpoint, lane);
  }
}

bool OneByOne::post(std::uint32_t lane, std::uint64_t message) {
  if (!complete()) return false;
  if (const int error = posters_[lane].post(message, 1, true)) {
    failure_ = Failure{Outcome::kFailed, fmt::format("posting: {}", std::strerror(error))};
    return false;
  }
  open_ = queues_[lane];
  return true;
}

bool OneByOne::wait() {
  ibv_wc completion{};
  const auto stall = endpoint_.plan().stall_limit;
  const int count = take_one(
      open_, waiter_, endpoint_.plan().completion, completion, [] { return false; },
      [] { return false; }, stall.count() * 1'000'000);
  if (count != 0) return judge(count, completion);
  failure_ = Failure{Outcome::kTimedOut,
                     fmt::format("a message was not completed within {} ms", stall.count())};
  return false;
}

bool OneByOne::take() {
  ibv_wc completion{};
  const int count = ibv_poll_cq(open_, 1, &completion);
  return count == 0 || judge(count, completion);
}

bool OneByOne::judge(int count, const ibv_wc& completion) {
  open_ = nullptr;
  if (count > 0 && completion.status == IBV_WC_SUCCESS) return true;
  failure_ = Failure{Outcome::kFailed, count < 0 ? "ibv_poll_cq failed; the device may be gone"
                                                 : completion_status_name(completion.status)};
  return false;
}

RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                        const std::atomic<bool>& stop) {
  return Pinger(endpoint, stop).run(duration);
}

void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report) {
  const TrafficPlan& plan = endpoint.plan();
  OneByOne sender(endpoint);
  constexpr std::int64_t kForever = std::int64_t{1} << 60;
  std::uint32_t lane = 0;
  std::uint64_t ping = 0;  // of that lane
  while (!stop) {
    const Slot& slot = sender.next_slot(lane);
    const std::uint64_t last = slot.offset + sender.next_bytes(lane) - 1;
    const std::byte* place = endpoint.target(slot).address() + last;
    const std::byte wanted = mark(sender.next_lap(lane));
    if (!spin([&] { return holds_mark(place, wanted) || !sender.look(); },
              [&] { return stop.load(); }, kForever)) {
      return;
    }
    if (sender.failure()) break;
    ++report.received;
    endpoint.local(slot).address()[last] = wanted;
    if (!sender.post(lane, ping)) break;
    if (++lane == plan.qp_count) {
      lane = 0;
      ++ping;
    }
  }
  if (!stop) report.failure = sender.failure();
}

}  // namespace greynic::verbs
