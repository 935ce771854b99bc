#include "counters/counter_watch.h"

#include "greynic/statistics/mean.h"
#include "greynic/verbs/counters.h"
#include "traffic/own_file_table.h"

namespace greynic::verbs {
namespace {

constexpr int kReadings = 5;
constexpr std::string_view kDriverPrefix = "hw.";

}  // namespace

CounterSource counters_of_device(std::string device, int port) {
  return {[device = std::move(device), port] { return read_neutral_counters(device, port); }};
}

CounterSource counters_of_host(target::FarCounters& far) {
  const auto read = [&far] {
    std::map<std::string, double> counters;
    const auto seen = far.look();
    if (!seen) return counters;
    for (const auto& [name, value] : seen->counters) {
      if (!name.starts_with(kDriverPrefix)) continue;
      const auto neutral = neutral_name(std::string_view(name).substr(kDriverPrefix.size()));
      if (!neutral.empty()) counters.emplace(neutral, value);
    }
    return counters;
  };
  // What talks to another host opens files for threads of its own.
  return {read, false};
}

CounterWatch::CounterWatch(CounterSource source, std::chrono::nanoseconds duration,
                           std::chrono::nanoseconds every, target::CounterArena* arena)
    : source_(std::move(source)), arena_(arena), duration_(duration), every_(every) {
  thread_ = std::thread([this] {
    if (source_.own_files) own_file_table({});
    watch();
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

CounterWatch::Clock::time_point CounterWatch::due(int reading) const {
  if (every_.count() > 0) return begin_ + every_ * reading;
  const std::chrono::nanoseconds warm_up = duration_ / 10;
  // The last reading a little before the end, so that it is still of the run.
  return begin_ + warm_up + (duration_ - 2 * warm_up) * reading / (kReadings - 1);
}

CounterWatch::Reading CounterWatch::read() {
  const Clock::time_point asked = Clock::now();
  Reading reading{asked, source_.read()};
  // An answer from afar is of some moment between the question and now.
  reading.when += (Clock::now() - asked) / 2;
  if (arena_ == nullptr) return reading;
  arena_->publish({(reading.when - begin_) / std::chrono::nanoseconds(1),
                   {reading.counters.begin(), reading.counters.end()}});
  const target::CounterReading seen = arena_->look();
  return {begin_ + std::chrono::nanoseconds(seen.time_ns),
          {seen.counters.begin(), seen.counters.end()}};
}

void CounterWatch::watch() {
  const int readings = every_.count() > 0 ? static_cast<int>(duration_ / every_) : kReadings;
  for (int i = 0; i < readings; ++i) {
    // A reading that comes after the next one is due stands for both.
    if (i + 1 < readings && due(i + 1) <= Clock::now()) continue;
    std::unique_lock lock(mutex_);
    if (ended_.wait_until(lock, due(i), [&] { return end_; })) return;
    lock.unlock();
    Reading reading = read();
    if (!reading.counters.empty()) readings_.push_back(std::move(reading));
  }
}

std::map<std::string, std::vector<CounterSample>> CounterWatch::samples() {
  end();
  std::map<std::string, std::vector<CounterSample>> samples;
  if (every_.count() == 0) return samples;
  for (const Reading& reading : readings_) {
    const auto time =
        std::chrono::duration_cast<std::chrono::nanoseconds>(reading.when - begin_).count();
    for (const auto& [name, value] : reading.counters) samples[name].push_back({time, value});
  }
  keep_what_moved(samples);
  return samples;
}

std::map<std::string, Measure> CounterWatch::rates() {
  end();
  std::map<std::string, std::vector<double>> found;
  for (std::size_t i = 1; i < readings_.size(); ++i) {
    if (readings_[i - 1].when < begin_ + duration_ / 10) continue;  // warm-up
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
