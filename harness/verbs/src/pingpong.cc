#include "pingpong.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>

#include "greynic/core/completion_status.h"
#include "payload.h"
#include "poster.h"
#include "rate.h"
#include "waiting.h"

namespace greynic::verbs {
namespace {

constexpr std::int64_t kLossLimitNs = 200'000'000;  // far above any answer that is still coming

Endpoint::Group& group_of(Endpoint& endpoint, std::uint32_t lane) {
  return endpoint.groups()[lane / endpoint.plan().qps_per_cq];
}

/// The byte that tells ping k of a lane from the one before.
std::byte mark(std::uint64_t ping) { return static_cast<std::byte>(ping % 255 + 1); }

/// Volatile: the device writes it behind the compiler's back.
bool wait_for_mark(const std::byte* place, std::byte wanted, std::int64_t limit_ns,
                   const std::atomic<bool>& stop) {
  const auto* watched = reinterpret_cast<const volatile std::byte*>(place);
  const std::int64_t end = now_ns() + limit_ns;
  for (int spins = 0; *watched != wanted; ++spins) {
    if ((spins & 1023) == 1023 && (stop || now_ns() > end)) return *watched == wanted;
  }
  return true;
}

/// Polls one CQ until something comes. Negative: the device failed; 0: the limit passed.
int wait_for_completion(CompletionQueue& cq, ibv_wc* completion, std::int64_t limit_ns) {
  const std::int64_t end = now_ns() + limit_ns;
  for (int spins = 0;; ++spins) {
    if (const int count = ibv_poll_cq(cq.handle(), 1, completion); count != 0) return count;
    if ((spins & 255) == 255 && now_ns() > end) return 0;
  }
}

class Pinger {
 public:
  Pinger(Endpoint& endpoint, const std::atomic<bool>& stop)
      : endpoint_(endpoint), plan_(endpoint.plan()), stop_(stop) {
    for (std::uint32_t lane = 0; lane < plan_.qp_count; ++lane)
      posters_.emplace_back(endpoint, lane);
    report_.completed_by_lane.resize(plan_.qp_count);
  }

  RequestReport run(std::chrono::nanoseconds duration) {
    const std::int64_t begin = now_ns();
    const std::int64_t measure = begin + duration.count() / 10;
    const std::int64_t end = begin + duration.count();
    Slices slices(measure, end);
    const double cpu_begin = thread_cpu_seconds();
    const bool whole = plan_.one_sided_answer();
    for (std::uint64_t i = 0; !stop_ && !report_.failure; ++i) {
      const auto lane = static_cast<std::uint32_t>(i % plan_.qp_count);
      const std::uint64_t ping = i / plan_.qp_count;
      const std::int64_t sent = now_ns();
      if (sent >= end) break;
      const bool answered = round(lane, ping);
      const std::int64_t back = now_ns();
      ++report_.posted;
      if (!answered) {
        ++report_.lost;
        // Without a retransmission RC and its answers would be out of step for ever after.
        if (plan_.transport == Transport::kRC && !report_.failure && !stop_) {
          report_.failure = Failure{
              Outcome::kTimedOut,
              fmt::format("no answer to ping {} within {} ms", i, plan_.stall_limit.count())};
        }
        continue;
      }
      ++report_.completed;
      ++report_.completed_by_lane[lane];
      if (back < measure) continue;
      slices.add(back, 1);
      report_.latency.record(static_cast<std::uint64_t>(back - sent) / (whole ? 1 : 2));
    }
    const Slices::Rate rate = slices.rate();
    report_.messages_per_second = rate.per_second;
    report_.rate_standard_error = rate.standard_error;
    report_.steady = rate.steady;
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
        plan_.transport == Transport::kRC ? plan_.stall_limit.count() * 1'000'000 : kLossLimitNs;
    const Slot& slot = endpoint_.slots(lane)[ping % endpoint_.slots(lane).size()];
    const std::uint32_t bytes = posters_[lane].bytes_of(ping);
    if (plan_.operation == Operation::kWrite) {
      endpoint_.local(slot).address()[slot.offset + bytes - 1] = mark(ping);
    }
    if (auto failure = send_one(endpoint_, posters_[lane], lane, ping)) {
      report_.failure = std::move(failure);
      return false;
    }
    if (plan_.one_sided_answer()) {
      check_answer(lane, ping, slot, bytes);
      return true;
    }
    if (plan_.operation == Operation::kWrite) {
      return wait_for_mark(endpoint_.target(slot).address() + slot.offset + bytes - 1, mark(ping),
                           limit, stop_);
    }
    ibv_wc completion{};
    const int count = wait_for_completion(group_of(endpoint_, lane).receive_cq, &completion, limit);
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
    if (!plan_.validate) return;
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
  std::vector<Poster> posters_;
  RequestReport report_;
};

}  // namespace

std::optional<Failure> send_one(Endpoint& endpoint, Poster& poster, std::uint32_t lane,
                                std::uint64_t message) {
  if (const int error = poster.post(message, 1, true)) {
    return Failure{Outcome::kFailed, fmt::format("posting: {}", std::strerror(error))};
  }
  ibv_wc completion{};
  const int count = wait_for_completion(group_of(endpoint, lane).send_cq, &completion,
                                        endpoint.plan().stall_limit.count() * 1'000'000);
  if (count == 0) {
    return Failure{Outcome::kTimedOut, fmt::format("a message was not completed within {} ms",
                                                   endpoint.plan().stall_limit.count())};
  }
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
  std::vector<Poster> posters;
  for (std::uint32_t lane = 0; lane < plan.qp_count; ++lane) posters.emplace_back(endpoint, lane);
  constexpr std::int64_t kForever = std::int64_t{1} << 60;
  for (std::uint64_t i = 0; !stop; ++i) {
    const auto lane = static_cast<std::uint32_t>(i % plan.qp_count);
    const std::uint64_t ping = i / plan.qp_count;
    const Slot& slot = endpoint.slots(lane)[ping % endpoint.slots(lane).size()];
    const std::uint64_t last = slot.offset + posters[lane].bytes_of(ping) - 1;
    if (!wait_for_mark(endpoint.target(slot).address() + last, mark(ping), kForever, stop)) return;
    ++report.received;
    endpoint.local(slot).address()[last] = mark(ping);
    if (auto failure = send_one(endpoint, posters[lane], lane, ping)) {
      if (!stop) report.failure = std::move(failure);
      return;
    }
  }
}

}  // namespace greynic::verbs
