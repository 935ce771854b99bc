#include "counters/counter_watch.h"

#include "greynic/statistics/mean.h"
#include "greynic/verbs/counters.h"
#include "traffic/own_file_table.h"

namespace greynic::verbs {
namespace {

constexpr int kReadings = 5;

}  // namespace

CounterWatch::CounterWatch(std::string device, int port, std::chrono::nanoseconds duration)
    : device_(std::move(device)), port_(port) {
  thread_ = std::thread([this, begin = Clock::now(), duration] {
    own_file_table({});
    watch(begin, duration);
  });
}

CounterWatch::~CounterWatch() { end(); }

void CounterWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CounterWatch::watch(Clock::time_point begin, std::chrono::nanoseconds duration) {
  const std::chrono::nanoseconds warm_up = duration / 10;
  for (int i = 0; i < kReadings; ++i) {
    // The last reading a little before the end, so that it is still of the run.
    const auto due = begin + warm_up + (duration - 2 * warm_up) * i / (kReadings - 1);
    std::unique_lock lock(mutex_);
    if (ended_.wait_until(lock, due, [&] { return end_; })) return;
    lock.unlock();
    Reading reading{Clock::now(), read_neutral_counters(device_, port_)};
    readings_.push_back(std::move(reading));
  }
}

std::map<std::string, Measure> CounterWatch::rates() {
  end();
  std::map<std::string, std::vector<double>> found;
  for (std::size_t i = 1; i < readings_.size(); ++i) {
    const std::chrono::duration<double> span = readings_[i].when - readings_[i - 1].when;
    for (const auto& [name, value] : readings_[i].counters) {
      const auto before = readings_[i - 1].counters.find(name);
      if (before == readings_[i - 1].counters.end()) continue;
      found[name].push_back((value - before->second) / span.count());
    }
  }
  std::map<std::string, Measure> rates;
  for (const auto& [name, values] : found) {
    const statistics::Mean rate = statistics::mean_of(values);
    if (rate.value <= 0.0) continue;
    Measure& measured = rates[name + "_per_second"];
    measured.value = rate.value;
    if (rate.count > 1) measured.standard_error = rate.standard_error;
  }
  return rates;
}

}  // namespace greynic::verbs
