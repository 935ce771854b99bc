#include "remote_looks.h"

#include <algorithm>

namespace greynic::monitor {
namespace {

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RemoteLooks::RemoteLooks(const CreditOptions& credits, std::size_t threads,
                         std::function<bool(std::uint32_t)> look)
    : look_(std::move(look)), credits_(credits) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

RemoteLooks::~RemoteLooks() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    asked_.clear();
  }
  asked_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RemoteLooks::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_changed_.wait(lock, [this] { return over_ || !asked_.empty(); });
    if (over_) return;
    Asked one = asked_.front();
    asked_.pop_front();
    lock.unlock();
    const bool answered = look_(one.job.host);
    one.delay_ns = answered ? static_cast<double>(clock_ns()) - one.begin_ns : 0;
    lock.lock();
    answered_.push_back(one);
    answered_changed_.notify_one();
  }
}

std::vector<std::uint32_t> RemoteLooks::turn() {
  std::vector<Asked> answered;
  const std::unique_lock lock(mutex_);
  answered.swap(answered_);
  const auto now = static_cast<double>(clock_ns());
  std::vector<std::uint32_t> hosts;
  for (const Asked& one : answered) {
    credits_.done(one.job, now, one.delay_ns);
    hosts.push_back(one.job.host);
  }
  while (const auto job = credits_.next(now)) {
    asked_.push_back({*job, now, 0});
    asked_changed_.notify_one();
  }
  return hosts;
}

void RemoteLooks::wait_until_ns(std::int64_t steady_ns) {
  std::unique_lock lock(mutex_);
  if (!answered_.empty()) return;
  if (!credits_.idle() && credits_.pace_ns() > static_cast<double>(clock_ns())) {
    steady_ns = std::min(steady_ns, static_cast<std::int64_t>(credits_.pace_ns()));
  }
  const std::int64_t left = steady_ns - clock_ns();
  if (left > 0) answered_changed_.wait_for(lock, std::chrono::nanoseconds(left));
}

}  // namespace greynic::monitor
