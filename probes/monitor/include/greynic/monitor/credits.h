#pragma once

/// Who is READ next, and when: flow control by the receiver, for thousands of hosts behind one port.
///
/// All answers come together at the collector's own port, so whoever asks for too much at once fills
/// its queue. Here the bytes that are asked for and not yet there (credit) stay near one product of
/// bandwidth and delay, k of them, and k follows the delay that READs really have: it grows while
/// the queue adds less than `queue_target` to the least delay seen, and shrinks in proportion when
/// it adds more. READs are also paced at the rate of the port, so that a burst of requests is no
/// burst of answers. Nothing is asked of the network: no PFC, no ECN.
///
/// Jobs of a higher priority go first; within one, the earliest deadline. Time is any clock in
/// nanoseconds. Not thread-safe.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace greynic::monitor {

struct CreditOptions {
  double bytes_per_ns = 12.5;     ///< of the collector's port; 12.5: 100 Gbit/s
  double base_delay_ns = 4000;    ///< guessed, until a READ was quicker
  double queue_target_ns = 1200;  ///< delay that the port's queue may add
  double most_k = 8;
  /// Jobs of the size at hand that may always be under way: who does not answer keeps its share of
  /// the window, so with 1 a single host that hangs may hold all others.
  double least_jobs = 1;
  /// The queue may add the time that so many jobs take on the line, if that is more than its target:
  /// with less, large jobs would have to arrive one by one, and the line would rest between two.
  double queue_target_jobs = 0.4;
};

class Credits {
 public:
  struct Job {
    std::uint32_t host = 0;
    std::uint32_t bytes = 0;
    std::uint8_t priority = 0;  ///< the smaller goes first
    double deadline_ns = 0;
  };
  explicit Credits(const CreditOptions& options)
      : options_(options),
        base_ns_(options.base_delay_ns),
        window_(options.base_delay_ns * options.bytes_per_ns) {}

  void add(const Job& job) { queues_.at(job.priority).push({job, ++order_}); }

  /// The next job, if it may be asked for now.
  [[nodiscard]] std::optional<Job> next(double now_ns) {
    for (auto& queue : queues_) {
      if (queue.empty()) continue;
      const Job job = queue.top().job;
      // A job larger than the window goes alone.
      if (now_ns < pace_ns_ || (in_flight_ > 0 && in_flight_ + job.bytes > window_)) {
        return std::nullopt;
      }
      queue.pop();
      in_flight_ += job.bytes;
      // Time that was not used is lost but for a little, which hides the delays of this thread.
      pace_ns_ = std::max(pace_ns_, now_ns - kSlackNs) + job.bytes / options_.bytes_per_ns;
      return job;
    }
    return std::nullopt;
  }
  /// When pacing lets the next job go; credit may come later.
  [[nodiscard]] double pace_ns() const { return pace_ns_; }

  /// A job has come, or failed (`delay_ns` 0).
  void done(const Job& job, double now_ns, double delay_ns) {
    in_flight_ -= job.bytes;
    if (delay_ns <= 0) return;
    const double own = job.bytes / options_.bytes_per_ns;
    const double delay = std::max(0.0, delay_ns - own);
    base_ns_ = samples_++ == 0 ? delay : std::min(base_ns_, delay);
    const double most = options_.most_k * std::max(base_ns_, own) * options_.bytes_per_ns;
    const double queued = delay - base_ns_;
    const double target = std::max(options_.queue_target_ns, options_.queue_target_jobs * own);
    if (queued < target) {
      // As TCP: twice as much until the port's queue was felt once, then one job more, for each
      // window that comes.
      const double share = felt_queue_ ? job.bytes / window_ : 1.0;
      window_ += job.bytes * share;
    } else if (now_ns >= next_cut_ns_) {
      window_ *= 1 - 0.5 * (queued - target) / queued;
      next_cut_ns_ = now_ns + delay_ns;
      felt_queue_ = true;
    }
    const double least = options_.least_jobs * job.bytes;
    window_ = std::clamp(window_, least, std::max(least, most));
  }

  [[nodiscard]] bool idle() const {
    return in_flight_ == 0 && std::all_of(queues_.begin(), queues_.end(),
                                          [](const auto& queue) { return queue.empty(); });
  }
  [[nodiscard]] std::uint64_t in_flight_bytes() const { return in_flight_; }
  [[nodiscard]] double window_bytes() const { return window_; }
  /// Products of bandwidth and least delay that may be under way.
  [[nodiscard]] double k() const { return window_ / (base_ns_ * options_.bytes_per_ns); }

 private:
  static constexpr double kSlackNs = 500;
  struct Waiting {
    Job job;
    std::uint64_t order;
    bool operator<(const Waiting& other) const {
      return job.deadline_ns != other.job.deadline_ns ? job.deadline_ns > other.job.deadline_ns
                                                      : order > other.order;
    }
  };

  CreditOptions options_;
  std::array<std::priority_queue<Waiting>, 3> queues_;
  std::uint64_t order_ = 0, samples_ = 0;
  std::uint64_t in_flight_ = 0;
  double base_ns_;
  double window_;
  double pace_ns_ = 0;
  double next_cut_ns_ = 0;
  bool felt_queue_ = false;
};

}  // namespace greynic::monitor
