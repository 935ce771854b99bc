#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "greynic/core/completion_status.h"
#include "greynic/verbs/traffic.h"
#include "traffic/completion_rate.h"
#include "traffic/completion_waiter.h"
#include "traffic/own_file_table.h"
#include "traffic/payload.h"
#include "traffic/pingpong.h"
#include "traffic/poster.h"

namespace greynic::verbs {
namespace {

constexpr int kEmptyPollsPerClock = 64;
constexpr std::int64_t kStoppedDrainNs = 1'000'000'000;

/// One lane as its thread sees it. Completions of a lane come in order.
struct Lane {
  std::uint32_t index;
  Poster poster;
  std::vector<std::int64_t> started;  ///< by message modulo send depth: posted, or due
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::size_t next_start = 0;    ///< place of message `posted` in `started`
  std::size_t next_retired = 0;  ///< place of message `completed` there
  bool closing = false;          ///< the last message posted asked for a completion to drain
};

struct Times {
  std::int64_t measure_begin = 0;
  std::int64_t end = 0;
};

/// The lanes of one thread, driven until the end of the run and then drained.
class RequestThread {
 public:
  RequestThread(Endpoint& endpoint, std::uint32_t thread, Times times,
                const std::atomic<bool>& stop, std::atomic<bool>& broken)
      : endpoint_(endpoint),
        plan_(endpoint.plan()),
        times_(times),
        stop_(stop),
        broken_(broken),
        waiter_(endpoint, thread, CqSide::kSend),
        bins_(times.measure_begin, times.end) {
    for (const Endpoint::Group* group : waiter_.groups()) {
      for (std::uint32_t i = 0; i < group->lane_count; ++i) {
        const std::uint32_t lane = group->first_lane + i;
        lanes_.push_back(
            {lane, Poster(endpoint, lane), std::vector<std::int64_t>(plan_.send_depth)});
      }
    }
    for (Lane& lane : lanes_) roomy_.push_back(&lane);
    // Lanes of a thread are not consecutive when CQ groups are dealt in turn.
    place_.resize(plan_.qp_count);
    for (std::size_t i = 0; i < lanes_.size(); ++i) place_[lanes_[i].index] = i;
    if (plan_.offered_rate > 0) {
      const double share = static_cast<double>(lanes_.size()) / plan_.qp_count;
      interval_ns_ = 1e9 / (plan_.offered_rate * share);
    }
  }

  void run() {
    const double cpu_begin = thread_cpu_seconds();
    now_ = clock_.now_ns();
    progress_ = now_;
    due_ = static_cast<double>(now_);
    int empty = 0;
    while (!halted() && now_ < times_.end) {
      if (interval_ns_ > 0) {
        post_due();
      } else {
        post_where_room_is();
      }
      if (report_.failure) break;
      if (take(waiter_.poll(completions_, kPollBatch))) {
        empty = 0;
      } else if (interval_ns_ > 0 || ++empty == kEmptyPollsPerClock ||
                 plan_.completion != CompletionMode::kPolling) {
        empty = 0;
        now_ = clock_.now_ns();
        check_stall();
      }
    }
    report_.cpu_ns_per_message = (thread_cpu_seconds() - cpu_begin) * 1e9;
    drain();
    for (const Lane& lane : lanes_) {
      report_.posted += lane.posted;
      report_.completed += lane.completed;
    }
  }

  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] const CompletionBins& bins() const { return bins_; }
  [[nodiscard]] RequestReport& report() { return report_; }

 private:
  [[nodiscard]] bool halted() const {
    return stop_.load(std::memory_order_relaxed) || broken_.load(std::memory_order_relaxed) ||
           report_.failure;
  }

  void fail_run(Outcome outcome, std::string reason) {
    if (!report_.failure) report_.failure = Failure{outcome, std::move(reason)};
    broken_ = true;
  }

  bool post(Lane& lane, std::uint32_t count, bool signal_last, std::int64_t started) {
    for (std::uint32_t i = 0; i < count; ++i) {
      lane.started[lane.next_start] = started;
      if (++lane.next_start == plan_.send_depth) lane.next_start = 0;
    }
    if (const int error = lane.poster.post(count, signal_last)) {
      fail_run(Outcome::kFailed, fmt::format("posting to QP {}: {} (errno {})", lane.index,
                                             std::strerror(error), error));
      return false;
    }
    lane.posted += count;
    lane.closing = signal_last;
    return true;
  }

  /// How many messages the next list of a lane has: post_batch, or none while there is no room for
  /// them; but where all that is under way asks for no completion, waiting would never make room,
  /// and the list is cut behind the message that asks for one.
  [[nodiscard]] std::uint32_t list_length(const Lane& lane) const {
    const auto open = static_cast<std::uint32_t>(lane.posted - lane.completed);
    if (plan_.send_depth - open >= plan_.post_batch) return plan_.post_batch;
    if (plan_.post_batch == 1) return 0;  // a full queue has asked; and no division for it
    const auto silent = static_cast<std::uint32_t>(lane.posted % plan_.signal_every);
    return open == silent ? plan_.signal_every - silent : 0;
  }

  /// Closed loop: fills the lanes that are not full, which are those that completed something since
  /// they were filled last.
  void post_where_room_is() {
    for (Lane* const lane : roomy_) {
      while (const std::uint32_t length = list_length(*lane)) {
        if (!post(*lane, length, false, now_)) return;
      }
    }
    roomy_.clear();
  }

  /// Open loop: what is due, a list of messages at once, is posted to the next lane with room; what
  /// finds none stays due, and its waiting counts as latency.
  void post_due() {
    while (due_ <= static_cast<double>(now_)) {
      Lane* free = nullptr;
      std::uint32_t length = 0;
      for (std::size_t i = 0; i < lanes_.size() && free == nullptr; ++i) {
        Lane& lane = lanes_[(turn_ + i) % lanes_.size()];
        length = list_length(lane);
        if (length > 0) free = &lane;
      }
      if (free == nullptr) return;
      turn_ = static_cast<std::size_t>(free - lanes_.data()) + 1;
      if (!post(*free, length, false, static_cast<std::int64_t>(due_))) return;
      due_ += interval_ns_ * length;
    }
  }

  /// True when there was something to take.
  bool take(int count) {
    if (count == 0) return false;
    if (count < 0) {
      fail_run(Outcome::kFailed, "ibv_poll_cq failed; the device may be gone");
      return true;
    }
    now_ = clock_.now_ns();
    progress_ = now_;
    roomy_.clear();
    const bool measured = now_ >= times_.measure_begin && now_ < times_.end;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions_[i];
      Lane& lane = lanes_[place_[completion.wr_id >> 32]];
      if (completion.status != IBV_WC_SUCCESS) {
        fail_run(Outcome::kFailed, completion_status_name(completion.status));
        return true;
      }
      // The message that completed is the last of those that are retired by it.
      const auto number = static_cast<std::uint32_t>(completion.wr_id);
      const std::uint32_t retired = number - static_cast<std::uint32_t>(lane.completed) + 1;
      if (plan_.validate) check_payload(lane, lane.completed, retired);
      lane.completed += retired;
      lane.next_retired += retired;
      if (lane.next_retired >= plan_.send_depth) lane.next_retired -= plan_.send_depth;
      if (roomy_.empty() || roomy_.back() != &lane) roomy_.push_back(&lane);
      if (measured) {
        bins_.add(now_, retired);
        const std::size_t last = lane.next_retired > 0 ? lane.next_retired : plan_.send_depth;
        report_.latency.record(
            static_cast<std::uint64_t>(std::max<std::int64_t>(now_ - lane.started[last - 1], 0)));
      }
    }
    return true;
  }

  /// What READ fetched and what atomics returned; other operations are checked where they arrive.
  void check_payload(const Lane& lane, std::uint64_t first, std::uint32_t count) {
    if (!plan_.one_sided_answer()) return;
    const std::size_t slots = endpoint_.slots(lane.index).size();
    for (std::uint64_t message = first; message < first + count; ++message) {
      // A later message may have landed in the same slot by now.
      if (lane.posted - message > slots) continue;
      if (!fetched_well(endpoint_, lane.index, message, lane.poster.bytes_of(message))) {
        ++report_.payload_errors;
      }
    }
  }

  [[nodiscard]] std::uint64_t outstanding() const {
    std::uint64_t sum = 0;
    for (const Lane& lane : lanes_) sum += lane.posted - lane.completed;
    return sum;
  }

  void check_stall() {
    const std::uint64_t open = outstanding();
    if (open == 0) {
      progress_ = now_;
    } else if (now_ - progress_ > plan_.stall_limit.count() * 1'000'000) {
      fail_run(Outcome::kTimedOut,
               fmt::format("no completion for {} ms with {} messages posted and "
                           "not completed",
                           plan_.stall_limit.count(), open));
    }
  }

  /// Asks for a completion of each lane's last message and waits for all of them; for a moment
  /// only when the run was stopped.
  void drain() {
    const std::int64_t begin = clock_.now_ns();
    while (!broken_.load(std::memory_order_relaxed) && !report_.failure) {
      bool open = false;
      for (Lane& lane : lanes_) {
        if (lane.posted == lane.completed) continue;
        open = true;
        const bool signalled = lane.closing || lane.posted % plan_.signal_every == 0;
        if (!signalled && lane.posted - lane.completed < plan_.send_depth) {
          if (!post(lane, 1, true, now_)) return;
        }
      }
      if (!open) return;
      if (!take(waiter_.poll(completions_, kPollBatch))) {
        now_ = clock_.now_ns();
        check_stall();
      }
      if (stop_.load(std::memory_order_relaxed) && clock_.now_ns() - begin > kStoppedDrainNs)
        return;
    }
  }

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  Times times_;
  const std::atomic<bool>& stop_;
  std::atomic<bool>& broken_;
  Waiter waiter_;
  CompletionBins bins_;
  std::vector<Lane> lanes_;
  std::vector<std::size_t> place_;
  std::vector<Lane*> roomy_;  ///< that may have room; when a rate says what is posted, not used
  RequestReport report_;
  ibv_wc completions_[kPollBatch];
  QuickClock clock_;
  std::int64_t now_ = 0;
  std::int64_t progress_ = 0;
  double interval_ns_ = 0.0;
  double due_ = 0.0;
  std::size_t turn_ = 0;
};

}  // namespace

RequestReport run_requests(Endpoint& endpoint, std::chrono::nanoseconds duration,
                           const std::atomic<bool>& stop) {
  const TrafficPlan& plan = endpoint.plan();
  if (plan.mode == Mode::kLatency) {
    RequestReport report;
    std::thread([&] {
      own_file_table(endpoint.files());
      report = run_pings(endpoint, duration, stop);
    }).join();
    return report;
  }
  const std::int64_t begin = now_ns();
  const Times times{begin + duration.count() / 10, begin + duration.count()};
  std::atomic<bool> broken = false;
  std::vector<std::unique_ptr<RequestThread>> workers;
  for (std::uint32_t t = 0; t < plan.thread_count; ++t) {
    workers.push_back(std::make_unique<RequestThread>(endpoint, t, times, stop, broken));
  }
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&endpoint, &worker] {
      own_file_table(endpoint.files());
      worker->run();
    });
  }
  for (std::thread& thread : threads) thread.join();

  RequestReport all;
  all.completed_by_lane.resize(plan.qp_count);
  CompletionBins bins(times.measure_begin, times.end);
  for (auto& worker : workers) {
    RequestReport& part = worker->report();
    all.posted += part.posted;
    all.completed += part.completed;
    all.latency.merge(part.latency);
    all.cpu_ns_per_message += part.cpu_ns_per_message;
    all.payload_errors += part.payload_errors;
    // A flush on one QP only follows the error of another.
    if (part.failure && (!all.failure || all.failure->reason == "IBV_WC_WR_FLUSH_ERR")) {
      all.failure = part.failure;
    }
    for (const Lane& lane : worker->lanes()) all.completed_by_lane[lane.index] = lane.completed;
    bins.merge(worker->bins());
  }
  if (all.posted > 0) all.cpu_ns_per_message /= static_cast<double>(all.posted);
  const CompletionBins::Rate rate = bins.rate();
  all.messages_per_second = rate.per_second;
  all.rate_standard_error = rate.standard_error;
  all.steady = rate.steady;
  return all;
}

}  // namespace greynic::verbs
