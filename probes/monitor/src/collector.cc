#include "greynic/monitor/collector.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "collecting.h"
#include "day_clock.h"
#include "greynic/monitor/timer_wheel.h"
#include "remote_looks.h"

namespace greynic::monitor {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t real_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

/// A group as the processing side knows it.
struct Series {
  std::unique_ptr<series::Group> group;
  std::uint64_t stored = 0;
  std::uint64_t generation = UINT64_MAX;  ///< of the store that `stored` is of
  std::int64_t time_ns = 0;
  std::vector<std::uint64_t> values;
};

/// Of groups that ended: beyond, the newer ones are forgotten. Some ten seconds of 10,000 calls each.
constexpr std::size_t kMostEnded = 100'000;

}  // namespace

struct Collector::State {
  explicit State(const CollectorOptions& asked)
      : options(asked), ring(asked.ring_bytes / 8), collecting(ring, asked.tell) {}

  CollectorOptions options;
  std::unique_ptr<series::StoreWriter> store;
  RecordRing ring;
  Collecting collecting;
  std::vector<std::unique_ptr<WatchedHost>> hosts;

  mutable std::mutex mutex;  ///< of what follows
  std::vector<HostState> host_states;
  Counts counts;
  std::unordered_map<std::uint64_t, Series> series;
  std::vector<Series> ended;

  std::atomic<bool> collected{false};  ///< nothing comes any more
  std::atomic<bool> deposed{false};
  Error why_deposed;
  std::string trouble;  ///< of the store, as it was told last

  void tell(const std::string& line) const {
    if (options.tell) options.tell(line);
  }
  DayClock clock;
  std::mutex clock_mutex;
  std::int64_t day_ns();
  bool look(std::uint32_t id);
  void show(std::uint32_t id);
  void process();
  void take(std::span<const std::uint64_t> record);
  void give(std::span<const std::uint64_t> record);
  void look_after_lines();
  void commit(bool last);
  void end_series(std::uint64_t number);
};

void Collector::State::end_series(std::uint64_t number) {
  auto node = series.extract(number);
  if (!options.keeps_ended || node.empty() || node.mapped().values.empty()) return;
  if (ended.size() < kMostEnded) {
    ended.push_back(std::move(node.mapped()));
  } else {
    ++counts.forgotten;
  }
}

/// One record from the ring, with the mutex held.
void Collector::State::take(std::span<const std::uint64_t> record) {
  const auto kind = static_cast<RecordKind>(record[0]);
  if (kind == RecordKind::kGroup) {
    series[record[1]].group.reset(reinterpret_cast<series::Group*>(record[2]));
  } else if (kind == RecordKind::kEnded) {
    end_series(record[1]);
  } else if (kind == RecordKind::kGap) {
    const std::unique_ptr<series::Gap> gap(reinterpret_cast<series::Gap*>(record[1]));
    if (store) store->add(*gap);
  } else {
    Series& one = series[record[1]];
    one.time_ns = static_cast<std::int64_t>(record[2]);
    one.values.assign(record.begin() + 3, record.end());
    if (!store) return;
    if (one.generation != store->generation()) {
      one.stored = store->group(*one.group);
      one.generation = store->generation();
    }
    store->add(one.stored, one.time_ns, one.values);
  }
}

/// The same record to the lines; without the mutex, as only this thread changes the series.
void Collector::State::give(std::span<const std::uint64_t> record) {
  const auto kind = static_cast<RecordKind>(record[0]);
  if (kind == RecordKind::kSample) {
    options.lines->sample(record[1], *series[record[1]].group, static_cast<std::int64_t>(record[2]),
                          record.subspan(3));
  } else if (kind == RecordKind::kEnded) {
    options.lines->ended(record[1]);
  } else if (kind == RecordKind::kGap) {
    options.lines->gap(*reinterpret_cast<const series::Gap*>(record[1]));
  }
}

/// Once nobody reads the lines any more.
void Collector::State::look_after_lines() {
  if (!options.lines || !options.lines->closed()) return;
  const std::string why = options.lines->counts().last_failure;
  options.lines.reset();
  if (options.ends_with_lines) {
    why_deposed = {ErrorCode::kIo, why + "; samples have nowhere else to go"};
    deposed = true;
  } else {
    tell(why + "; no more lines are written there, all else goes on");
  }
}

void Collector::State::commit(bool last) {
  if (!store) return;
  auto done = last ? store->seal() : store->commit();
  if (last && !done && done.error().code != ErrorCode::kRefused) done = store->commit();
  if (!done && done.error().code == ErrorCode::kRefused) {
    why_deposed = done.error();
    deposed = true;
  } else {
    // A disk that is full says so with each commit: it is told once, and so is its end.
    const std::string why = done ? "" : done.error().message;
    if (why != trouble) tell(done ? "samples are stored again" : "samples are lost: " + why);
    trouble = why;
  }
  const std::lock_guard lock(mutex);
  counts.acknowledged = store->counts().samples;
  counts.lost = collecting.counts().lost + store->counts().dropped;
}

void Collector::State::process() {
  auto next_commit = Clock::now() + options.commit;
  for (;;) {
    const bool was_collected = collected;
    std::size_t taken = 0;
    {
      std::unique_lock lock(mutex);
      for (auto record = ring.front(); !record.empty() && taken < 64; record = ring.front()) {
        if (options.lines) {
          lock.unlock();
          give(record);
          lock.lock();
        }
        take(record);
        ring.drop(record);
        ++taken;
      }
    }
    look_after_lines();
    if (Clock::now() >= next_commit) {
      commit(false);
      next_commit = Clock::now() + options.commit;
    }
    if (taken > 0) continue;
    if (was_collected) break;
    // Each wake costs some 100 us, which the watched programs may miss.
    std::this_thread::sleep_for(std::min(std::chrono::milliseconds(100), options.commit / 2));
  }
  if (!deposed) commit(true);
}

/// The time of day. A step of the clock is a gap of all hosts.
std::int64_t Collector::State::day_ns() {
  const std::lock_guard lock(clock_mutex);
  std::int64_t stepped_by = 0;
  const std::int64_t now = clock.now(real_ns(), steady_ns(), stepped_by);
  if (stepped_by != 0) {
    tell(fmt::format("the clock was stepped by {} ms", stepped_by / 1000000));
    for (const auto& one : hosts) {
      collecting.gap(one->spec(), now - stepped_by, now, "the clock was stepped");
    }
  }
  return now;
}

bool Collector::State::look(std::uint32_t id) {
  hosts[id]->look(day_ns());
  return hosts[id]->is_up();
}

void Collector::State::show(std::uint32_t id) {
  const WatchedHost& host = *hosts[id];
  const Collecting::Counts collected_now = collecting.counts();
  const std::lock_guard lock(mutex);
  HostState& shown = host_states[id];
  shown.up = host.is_up();
  if (!shown.up) shown.reason = host.reason();
  shown.looked_ns = real_ns();
  ++counts.looks;
  counts.samples = collected_now.samples;
  counts.gaps = collected_now.gaps;
}

/// One run: who is due when, and who is asked next.
class Collector::Rounds {
 public:
  explicit Rounds(State& state)
      : s_(state),
        begin_(steady_ns()),
        wheel_(static_cast<std::uint64_t>(begin_ / 1000000)),
        next_(state.hosts.size()) {
    std::size_t remote = 0;
    for (std::uint32_t i = 0; i < s_.hosts.size(); ++i) {
      // Hosts of one interval are spread over it, so that none waits for all others.
      next_[i] = begin_ + interval_of(i) * i / static_cast<std::int64_t>(s_.hosts.size());
      wheel_.add(i, static_cast<std::uint64_t>(next_[i] / 1000000));
      if (is_remote(i)) ++remote;
    }
    if (remote > 0) {
      remote_.emplace(s_.options.credits, std::min(remote, s_.options.remote_threads),
                      [this](std::uint32_t id) { return s_.look(id); });
    }
  }

  void turn(std::int64_t end) {
    due_.clear();
    wheel_.advance(static_cast<std::uint64_t>(steady_ns() / 1000000), due_);
    std::stable_sort(due_.begin(), due_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return s_.hosts[a]->spec().priority < s_.hosts[b]->spec().priority;
    });
    for (const std::uint32_t id : due_) {
      if (is_remote(id)) ask(id);
    }
    for (const std::uint32_t id : due_) {
      if (is_remote(id)) continue;
      s_.look(id);
      looked(id);
    }
    if (remote_) {
      for (const std::uint32_t id : remote_->turn()) looked(id);
    }
    const auto wake = std::min(end, static_cast<std::int64_t>(wheel_.next_ms(100)) * 1000000);
    if (remote_) {
      remote_->wait_until_ns(wake);
    } else if (wake > steady_ns()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(wake - steady_ns()));
    }
  }

 private:
  [[nodiscard]] bool is_remote(std::uint32_t id) const {
    return !s_.hosts[id]->spec().remote.empty();
  }
  [[nodiscard]] std::int64_t interval_of(std::uint32_t id) const {
    return s_.hosts[id]->spec().interval.count();
  }
  void ask(std::uint32_t id) {
    const WatchedHost& host = *s_.hosts[id];
    remote_->add({id, static_cast<std::uint32_t>(std::min<std::uint64_t>(host.bytes(), 1U << 30U)),
                  static_cast<std::uint8_t>(host.spec().priority),
                  static_cast<double>(next_[id] + interval_of(id))});
  }
  /// A look is over: the next one is due an interval after this one was.
  void looked(std::uint32_t id) {
    s_.show(id);
    const std::int64_t late = (steady_ns() - next_[id]) / interval_of(id);
    if (late > 0) {
      const std::lock_guard lock(s_.mutex);
      s_.counts.late_looks += static_cast<std::uint64_t>(late);
    }
    next_[id] += interval_of(id) * (1 + late);
    wheel_.add(id, static_cast<std::uint64_t>(next_[id] / 1000000));
  }

  State& s_;
  std::int64_t begin_;
  TimerWheel wheel_;
  std::vector<std::int64_t> next_;
  std::vector<std::uint32_t> due_;
  std::optional<RemoteLooks> remote_;
};

Collector::Collector(std::unique_ptr<State> state) : state_(std::move(state)) {}
Collector::~Collector() = default;

namespace {

/// What this user may not read at all; what is only not there yet is waited for.
Result<void> check_right(const HostSpec& host) {
  const auto denied = [&](const std::string& path, int mode) {
    return !path.empty() && ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) != 0 &&
           errno == EACCES;
  };
  if (denied(host.agent, W_OK) || denied(host.region, R_OK)) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}: this user may not open {}; run as root, or as its owner",
                            host.name, host.agent.empty() ? host.region : host.agent));
  }
  if (host.pid == 0) return {};
  const auto arenas = zero::find_arenas(host.pid);
  if (arenas || arenas.error().code != ErrorCode::kMissing) return {};
  return arenas.error().while_doing(host.name);
}

}  // namespace

Result<std::unique_ptr<Collector>> Collector::open(std::vector<HostSpec> hosts,
                                                   const CollectorOptions& options) {
  for (const HostSpec& host : hosts) {
    if (auto may = check_right(host); !may) return pass_on(may);
  }
  auto state = std::make_unique<State>(options);
  if (!options.store.empty()) {
    auto store = series::StoreWriter::open(options.store, options.store_options);
    if (!store) return pass_on(store);
    state->store = std::move(*store);
  }
  for (HostSpec& host : hosts) {
    state->host_states.push_back({host.name, false, "not read yet", host.interval, 0});
    state->hosts.push_back(
        std::make_unique<WatchedHost>(std::move(host), state->collecting, options.remote_links));
  }
  return std::unique_ptr<Collector>(new Collector(std::move(state)));
}

namespace {

/// How the thread that looks is woken, until this ends: at once, and not some 50 us later with others.
class Punctual {
 public:
  Punctual() : slack_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1UL); }
  ~Punctual() {
    prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_));
    const sched_param usual{};
    if (first_) sched_setscheduler(0, SCHED_OTHER, &usual);
  }
  Punctual(const Punctual&) = delete;
  Punctual& operator=(const Punctual&) = delete;

  [[nodiscard]] Result<void> before_others() {
    const sched_param least{.sched_priority = 1};
    first_ = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) == 0;
    if (first_) return {};
    return fail(ErrorCode::kMissing,
                fmt::format("--realtime: {}; run as root, or with CAP_SYS_NICE or `ulimit -r 1`",
                            std::strerror(errno)));
  }

 private:
  int slack_;
  bool first_ = false;
};

}  // namespace

Result<void> Collector::run(const std::atomic<bool>& stop,
                            std::optional<std::chrono::nanoseconds> duration) {
  State& s = *state_;
  Punctual punctual;
  if (s.options.realtime) {
    if (auto first = punctual.before_others(); !first) return first;
  }
  // With `realtime` this thread too is a usual one (SCHED_RESET_ON_FORK).
  std::thread processing([&s] { s.process(); });
  const std::int64_t begin = steady_ns();
  const std::int64_t end = duration ? begin + duration->count() : INT64_MAX;
  {
    Rounds rounds(s);
    while (!stop && !s.deposed && steady_ns() < end) rounds.turn(end);
  }
  const std::int64_t now = s.day_ns();
  for (const auto& host : s.hosts) host->end(now);
  {
    const std::lock_guard lock(s.mutex);
    s.counts.gaps = s.collecting.counts().gaps;
  }
  s.collected = true;
  processing.join();
  if (s.deposed) return tl::unexpected(s.why_deposed);
  return {};
}

std::vector<Collector::HostState> Collector::hosts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->host_states;
}

Collector::Counts Collector::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

void Collector::latest(const Latest& visit) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [number, one] : state_->series) {
    if (one.group && !one.values.empty()) visit(*one.group, one.time_ns, one.values);
  }
}

void Collector::take_ended(const Latest& visit) {
  std::vector<Series> ended;
  {
    const std::lock_guard lock(state_->mutex);
    ended.swap(state_->ended);
  }
  for (const Series& one : ended) visit(*one.group, one.time_ns, one.values);
}

}  // namespace greynic::monitor
