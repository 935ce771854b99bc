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

Endpoint::Group& group_of(Endpoint& endpoint, std::uint32_t lane) {
  return endpoint.groups()[lane / endpoint.plan().qps_per_cq];
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
int take_one(CompletionQueue& queue, Waiter& waiter, CompletionMode mode, ibv_wc& completion,
             const Meanwhile& meanwhile, const GiveUp& give_up, std::int64_t limit_ns) {
  int count = 0;
  if (mode == CompletionMode::kPolling) {
    const auto come = [&] {
      return (count = ibv_poll_cq(queue.handle(), 1, &completion)) != 0 || meanwhile();
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
    const std::int64_t limit =
        is_reliable(plan_.transport) ? plan_.stall_limit.count() * 1'000'000 : kLossLimitNs;
    const Slot& slot = sender_.next_slot(lane);
    const std::uint32_t bytes = sender_.next_bytes(lane);
    const std::byte own_mark = mark(sender_.next_lap(lane));
    if (plan_.operation == Operation::kWrite) {
      endpoint_.local(slot).address()[slot.offset + bytes - 1] = own_mark;
    }
    report_.failure = sender_.post(lane, ping);
    if (report_.failure) return false;
    if (plan_.one_sided_answer()) {
      report_.failure = sender_.complete();
      if (report_.failure) return false;
      if (plan_.validate) check_answer(lane, ping, slot, bytes);
      return true;
    }
    const bool answered = plan_.operation == Operation::kWrite
                              ? written(slot.offset + bytes - 1, slot, own_mark, limit)
                              : received(lane, limit);
    if (!answered || report_.failure) return false;
    report_.failure = sender_.complete();
    return !report_.failure;
  }

  /// Takes the ping's own completion while its answer is under way; true when the ping failed.
  bool ping_failed() {
    if (sender_.open()) report_.failure = sender_.look();
    return report_.failure.has_value();
  }

  /// Ends the wait for an answer that cannot come any more.
  bool hopeless() {
    report_.failure = sender_.look();
    return stop_ || report_.failure;
  }

  bool written(std::uint64_t offset, const Slot& slot, std::byte wanted, std::int64_t limit) {
    const std::byte* place = endpoint_.target(slot).address() + offset;
    return spin([&] { return holds_mark(place, wanted) || ping_failed(); },
                [&] { return hopeless(); }, limit);
  }

  bool received(std::uint32_t lane, std::int64_t limit) {
    ibv_wc completion{};
    const int count = take_one(
        group_of(endpoint_, lane).receive_cq, waiter_, plan_.completion, completion,
        [&] { return ping_failed(); }, [&] { return hopeless(); }, limit);
    if (count == 0) return false;
    if (count < 0 || completion.status != IBV_WC_SUCCESS) {
      report_.failure =
          Failure{Outcome::kFailed,
                  count < 0 ? "ibv_poll_cq failed" : completion_status_name(completion.status)};
      return false;
    }
    const auto arrived_lane = static_cast<std::uint32_t>(completion.wr_id >> 32);
    const auto arrived_slot = static_cast<std::uint32_t>(completion.wr_id);
    if (auto done = endpoint_.post_receive(arrived_lane, arrived_slot); !done) {
      report_.failure = Failure{Outcome::kFailed, done.error().message};
      return false;
    }
    return true;
  }

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
  OneByOne sender_;
  RequestReport report_;
};

}  // namespace

OneByOne::OneByOne(Endpoint& endpoint) : endpoint_(endpoint), waiter_(endpoint, 0, CqSide::kSend) {
  for (std::uint32_t lane = 0; lane < endpoint.plan().qp_count; ++lane) {
    posters_.emplace_back(endpoint, lane);
  }
}

std::optional<Failure> OneByOne::post(std::uint32_t lane, std::uint64_t message) {
  if (auto failure = complete()) return failure;
  if (const int error = posters_[lane].post(message, 1, true)) {
    return Failure{Outcome::kFailed, fmt::format("posting: {}", std::strerror(error))};
  }
  posters_[lane].prepare(message + 1);  // while this one travels: the next leaves the sooner
  open_ = &group_of(endpoint_, lane).send_cq;
  return std::nullopt;
}

std::optional<Failure> OneByOne::complete() {
  if (open_ == nullptr) return std::nullopt;
  ibv_wc completion{};
  const auto stall = endpoint_.plan().stall_limit;
  const int count = take_one(
      *open_, waiter_, endpoint_.plan().completion, completion, [] { return false; },
      [] { return false; }, stall.count() * 1'000'000);
  if (count != 0) return judge(count, completion);
  return Failure{Outcome::kTimedOut,
                 fmt::format("a message was not completed within {} ms", stall.count())};
}

std::optional<Failure> OneByOne::look() {
  if (open_ == nullptr) return std::nullopt;
  ibv_wc completion{};
  const int count = ibv_poll_cq(open_->handle(), 1, &completion);
  return count == 0 ? std::nullopt : judge(count, completion);
}

std::optional<Failure> OneByOne::judge(int count, const ibv_wc& completion) {
  open_ = nullptr;
  if (count < 0) return Failure{Outcome::kFailed, "ibv_poll_cq failed; the device may be gone"};
  if (completion.status == IBV_WC_SUCCESS) return std::nullopt;
  return Failure{Outcome::kFailed, completion_status_name(completion.status)};
}

RequestReport run_pings(Endpoint& endpoint, std::chrono::nanoseconds duration,
                        const std::atomic<bool>& stop) {
  return Pinger(endpoint, stop).run(duration);
}

void answer_writes(Endpoint& endpoint, const std::atomic<bool>& stop, AnswerReport& report) {
  const TrafficPlan& plan = endpoint.plan();
  OneByOne sender(endpoint);
  constexpr std::int64_t kForever = std::int64_t{1} << 60;
  std::optional<Failure> failure;
  const auto answer_failed = [&] {
    if (sender.open()) failure = sender.look();
    return failure.has_value();
  };
  std::uint32_t lane = 0;
  std::uint64_t ping = 0;  // of that lane
  while (!stop && !failure) {
    const Slot& slot = sender.next_slot(lane);
    const std::uint64_t last = slot.offset + sender.next_bytes(lane) - 1;
    const std::byte* place = endpoint.target(slot).address() + last;
    const std::byte wanted = mark(sender.next_lap(lane));
    if (!spin([&] { return holds_mark(place, wanted) || answer_failed(); },
              [&] { return stop.load(); }, kForever)) {
      return;
    }
    if (failure) break;
    ++report.received;
    endpoint.local(slot).address()[last] = wanted;
    failure = sender.post(lane, ping);
    if (++lane == plan.qp_count) {
      lane = 0;
      ++ping;
    }
  }
  if (!stop) report.failure = std::move(failure);
}

}  // namespace greynic::verbs
