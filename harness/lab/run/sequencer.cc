#include "run/sequencer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "run/process_clock.h"

/// Who runs when. What they ask for is done in sequencer_objects.cc.

namespace greynic::lab {
namespace {

using std::chrono::nanoseconds;

/// A program that computes for so long without asking for anything looks at its memory.
constexpr nanoseconds kSpinCpu = std::chrono::microseconds(200);
constexpr timespec kListen = {0, 100'000};
/// After so many looks without any computing, a program that sleeps waits for the world.
constexpr int kQuietLooks = 20;
/// How often a program is asked again that computes, and whose memory nobody changes.
constexpr twin::Time kSpinAgain = 1e6;
/// A poll that finds nothing, while something lies in another queue.
constexpr twin::Time kEmptyPollNs = 30, kLookAgain = 1e3;
/// From a program's write to a socket, or a completion that is an event, until who waits runs.
constexpr twin::Time kWakeNs = 5e3;

}  // namespace

Result<std::unique_ptr<Sequencer>> Sequencer::start(const PairOptions::VirtualTime& time) {
  std::unique_ptr<Sequencer> made(new Sequencer);
  twin::FabricSpec spec;
  spec.host.rnic = time.rnic;
  spec.host.profile = time.profile;
  for (const auto& [host, groups] : {std::pair(0U, time.server), std::pair(1U, time.client)}) {
    spec.others[host] = spec.host;
    spec.others[host].encap_groups = groups.out;
    spec.others[host].decap_groups = groups.in;
  }
  auto fabric = twin::Fabric::create(spec);
  if (!fabric) return pass_on(fabric);
  made->fabric_ = std::move(*fabric);
  made->file_ = memfd_create("greynic-lab-turns", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (made->file_ >= 0 && ftruncate(made->file_, sizeof(Turns)) == 0) {
    memory = mmap(nullptr, sizeof(Turns), PROT_READ | PROT_WRITE, MAP_SHARED, made->file_, 0);
  }
  if (memory == MAP_FAILED) return fail(ErrorCode::kIo, fmt::format("lab: {}", std::strerror(errno)));
  made->turns_ = new (memory) Turns;
  for (std::size_t i = 0; i < kSeats; ++i) made->processes_[i].seat = &made->turns_->seats[i];
  made->thread_ = std::thread([raw = made.get()] { raw->serve(); });
  return made;
}

Sequencer::~Sequencer() {
  ends_ = true;
  if (turns_) {
    turns_->bell.fetch_add(1);
    wake_on(turns_->bell);
  }
  if (thread_.joinable()) thread_.join();
  for (Process& process : processes_) let_go(process);
  fabric_.reset();
  if (turns_) munmap(turns_, sizeof(Turns));
  if (file_ >= 0) close(file_);
}

std::string Sequencer::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

void Sequencer::serve() {
  static constexpr std::uint32_t kStepsBetweenLooks = 1U << 16;
  for (std::uint32_t steps = 1; !ends_; ++steps) {
    if (steps % kStepsBetweenLooks == 0) bury();
    const std::uint32_t bell = turns_->bell.load(std::memory_order_acquire);
    hear();
    bool anyone = false;
    for (const Process& process : processes_) anyone = anyone || process.state != State::kAway;
    // Time stands still while everybody waits for something outside the lab.
    if (anyone && fabric_->step()) continue;
    static constexpr timespec kPause = {0, 2'000'000};
    wait_on(turns_->bell, bell, &kPause);
    bury();
  }
}

void Sequencer::bury() {
  for (Process& process : processes_) {
    const bool waits = process.seat->turn.load(std::memory_order_acquire) != TurnSeat::kAsked;
    if (process.pid != 0 && process.state == State::kAway && waits && !is_alive(process.pid)) {
      let_go(process);
    }
  }
}

void Sequencer::hear() {
  for (Process& process : processes_) {
    if (process.state != State::kAway) continue;
    const std::uint32_t owner = process.seat->owner.load(std::memory_order_acquire);
    if (owner == 0) continue;
    if (process.seat->turn.load(std::memory_order_acquire) != TurnSeat::kAsked) continue;
    if (process.pid == 0) {
      process.pid = owner;
      process.host = process.seat->host;
    }
    make_ready(process, 0);
  }
}

void Sequencer::make_ready(Process& process, twin::Time earliest) {
  process.state = State::kReady;
  fabric_->on_thread(process.host, 0, [this, &process] { take_turn(process); }, earliest);
}

/// What the process asked last is done at its thread's time, and all it asks after that.
void Sequencer::take_turn(Process& process) {
  if (process.state != State::kReady) return;
  process.state = State::kTurn;
  while (grant(process)) {
    switch (listen(process)) {
      case Heard::kAsked:
        continue;
      case Heard::kGone:
        return let_go(process);
      case Heard::kSilent:
        process.state = State::kAway;
        return;
    }
  }
}

Sequencer::Heard Sequencer::listen(Process& process) {
  std::atomic<std::uint32_t>& turn = process.seat->turn;
  static constexpr int kSpinsBefore = 200;
  for (int i = 0; i < kSpinsBefore; ++i) {
    if (turn.load(std::memory_order_acquire) == TurnSeat::kAsked) return Heard::kAsked;
  }
  nanoseconds start{}, before{};
  std::uint32_t looks = 0;
  int quiet = 0;
  bool told = false;
  while (!ends_) {
    const std::uint32_t bell = turns_->bell.load(std::memory_order_acquire);
    if (turn.load(std::memory_order_acquire) == TurnSeat::kAsked) return Heard::kAsked;
    wait_on(turns_->bell, bell, &kListen);
    if (turn.load(std::memory_order_acquire) == TurnSeat::kAsked) return Heard::kAsked;
    if (!is_alive(process.pid)) return Heard::kGone;
    const nanoseconds now = cpu_time(process.pid);
    const std::uint32_t at = process.seat->looks.load(std::memory_order_relaxed);
    if (start == nanoseconds{} || at != looks) start = now;
    looks = at;
    if (!told && now - start >= kSpinCpu) {
      told = true;
      kill(static_cast<pid_t>(process.pid), kTurnSignal);
    }
    if (told && now - start >= 4 * kSpinCpu) {  // it came while the program was about to ask
      told = false;
      start = now;
    }
    quiet = now == before && is_asleep(process.pid) ? quiet + 1 : 0;
    before = now;
    if (quiet >= kQuietLooks) return Heard::kSilent;
  }
  return Heard::kSilent;
}

void Sequencer::answer(Process& process, int error) {
  TurnSeat& seat = *process.seat;
  seat.error = error;
  seat.alarm = std::exchange(process.alarm, false);
  seat.clock_ns = fabric_->thread_time(process.host, 0);
  seat.turn.store(TurnSeat::kAnswered, std::memory_order_release);
  wake_on(seat.turn);
}

bool Sequencer::grant(Process& process) {
  TurnSeat& seat = *process.seat;
  fabric_->spend(process.host, std::exchange(seat.spent_ns, 0));
  switch (seat.ask) {
    case Ask::kPoll:
      if (fabric_->thread_time(process.host, 0) > fabric_->now()) {  // what it posted took time
        make_ready(process, 0);
        return false;
      }
      return poll(process);
    case Ask::kArm:
      return arm(process);
    case Ask::kWaitEvent:
      return wait_event(process);
    case Ask::kPasses:
      if (fabric_->thread_time(process.host, 0) > fabric_->now()) {
        make_ready(process, 0);
        return false;
      }
      break;
    case Ask::kSleep: {
      const auto ns = static_cast<twin::Time>(std::exchange(seat.number, 0));
      if (ns > 0) {
        make_ready(process, fabric_->thread_time(process.host, 0) + ns);
        return false;
      }
      break;
    }
    case Ask::kAlarm: {
      const std::uint64_t order = ++process.alarms;
      if (seat.number == 0) break;
      const twin::Time when =
          fabric_->thread_time(process.host, 0) + static_cast<twin::Time>(seat.number) * 1e9;
      fabric_->at(when, [this, &process, order] {
        if (process.alarms != order) return;
        process.alarm = true;
        const bool waits = process.state == State::kPolling || process.state == State::kSpinning ||
                           process.state == State::kExpecting;
        if (waits) make_ready(process, 0);
      });
      break;
    }
    case Ask::kBlocks:
      process.state = State::kAway;
      answer(process);
      settle(process, 0);
      return false;
    case Ask::kWrote:
      for (Process& other : processes_) {
        if (other.pid == 0 || other.state != State::kAway) continue;
        settle(other, fabric_->thread_time(process.host, 0) + kWakeNs);
      }
      break;
    case Ask::kSpins:
      // Its turn came again: its memory has changed, or it is time to look.
      if (std::exchange(seat.number, 0) == 1) break;
      seat.number = 1;
      return wait_for(process, State::kSpinning, kSpinAgain);
    default:
      return grant_data(process);
  }
  answer(process);
  return true;
}

/// Until an event makes it ready, or for so long at most.
bool Sequencer::wait_for(Process& process, State state, twin::Time most) {
  process.state = state;
  const std::uint64_t order = ++process.waits;
  if (most > 0) {
    fabric_->at(fabric_->now() + most, [this, &process, order] {
      if (process.state == State::kAway || process.waits != order) return;
      if (process.state == State::kReady || process.state == State::kTurn) return;
      process.looked = false;
      make_ready(process, 0);
    });
  }
  return false;
}

bool Sequencer::poll(Process& process) {
  TurnSeat& seat = *process.seat;
  const auto found = process.queues.find(seat.cq);
  if (found == process.queues.end()) {
    answer(process, EINVAL);
    return true;
  }
  std::array<twin::Completion, kTurnCompletions> seen;
  const std::size_t most = std::min<std::size_t>(seat.number, seen.size());
  Queue& queue = found->second;
  const int count = fabric_->poll(queue.id, std::span(seen).first(most));
  queue.unannounced = queue.unannounced || count > 0;
  queue.filled = fabric_->completion_count(queue.id) > 0;
  if (!queue.filled) fabric_->arm(queue.id);
  if (count == 0 && most > 0 && !process.alarm) {
    bool others = false;
    for (const auto& [name, other] : process.queues) others = others || other.filled;
    if (!others) return wait_for(process, State::kPolling, 0);
    if (process.looked) return wait_for(process, State::kPolling, kLookAgain);
    process.looked = true;
    fabric_->spend(process.host, kEmptyPollNs);
  }
  seat.count = std::max(0, count);
  for (int i = 0; i < count; ++i) {
    const twin::Completion& one = seen[static_cast<std::size_t>(i)];
    TurnCompletion& to = seat.completions[static_cast<std::size_t>(i)];
    to = {one.id,
          one.bytes,
          static_cast<std::uint32_t>(one.status),
          static_cast<std::uint32_t>(one.kind),
          numbers_[one.qp],
          one.immediate,
          one.from_qp == 0 ? 0 : numbers_[one.from_qp],
          one.from_host,
          one.has_immediate};
  }
  answer(process, count < 0 ? EIO : 0);
  return true;
}

/// The fabric tells of a completion: who polls goes on, who waits for an event is woken.
void Sequencer::completed(Process& process, std::uint32_t name) {
  Queue& queue = process.queues[name];
  queue.filled = true;
  process.looked = false;
  queue.unannounced = queue.unannounced || !queue.armed;
  if (queue.armed) announce(process, name);
  if (process.state != State::kPolling) return;
  process.state = State::kReady;
  take_turn(process);
}

void Sequencer::announce(Process& process, std::uint32_t name) {
  Queue& queue = process.queues[name];
  queue.armed = queue.unannounced = false;
  if (queue.channel == 0) return;
  process.events[queue.channel].push_back(name);
  if (process.state != State::kExpecting || process.seat->channel != queue.channel) return;
  make_ready(process, fabric_->now() + kWakeNs);
}

bool Sequencer::arm(Process& process) {
  const auto found = process.queues.find(process.seat->cq);
  if (found == process.queues.end()) {
    answer(process, EINVAL);
    return true;
  }
  Queue& queue = found->second;
  queue.armed = true;
  fabric_->arm(queue.id);
  // What no event tells of is an event at once.
  if (queue.unannounced && fabric_->completion_count(queue.id) > 0) announce(process, found->first);
  answer(process);
  return true;
}

bool Sequencer::wait_event(Process& process) {
  std::deque<std::uint32_t>& events = process.events[process.seat->channel];
  if (events.empty() && !process.alarm) return wait_for(process, State::kExpecting, 0);
  if (events.empty()) {
    answer(process, EINTR);
    return true;
  }
  process.seat->cq = events.front();
  events.pop_front();
  answer(process);
  return true;
}

/// Until a process that was told it may go outside waits there, or is back. Sockets of one machine
/// wake their readers at once, so who sleeps has nothing to read.
void Sequencer::settle(Process& process, twin::Time earliest) {
  const std::atomic<std::uint32_t>& turn = process.seat->turn;
  for (int asleep = 0; asleep < 2 && !ends_;) {
    if (turn.load(std::memory_order_acquire) == TurnSeat::kAsked) {
      return make_ready(process, earliest);
    }
    if (!is_alive(process.pid)) return;
    asleep = is_asleep(process.pid) ? asleep + 1 : 0;
    nanosleep(&kListen, nullptr);
  }
}

void Sequencer::let_go(Process& process) {
  for (const auto& [number, qp] : process.qps) (void)fabric_->destroy(qp);
  while (!process.memory.empty()) drop_memory(process, process.memory.begin()->first);
  for (const auto& [name, srq] : process.srqs) (void)fabric_->destroy(srq);
  for (const auto& [to, handle] : process.handles) (void)fabric_->destroy(handle);
  for (const auto& [name, queue] : process.queues) (void)fabric_->destroy(queue.id);
  if (process.file >= 0) close(process.file);
  TurnSeat* const seat = process.seat;
  const std::uint64_t alarms = process.alarms + 1, waits = process.waits + 1;
  process = {.seat = seat, .waits = waits, .alarms = alarms};
  seat->turn.store(TurnSeat::kIdle);
  seat->owner.store(0, std::memory_order_release);
}

}  // namespace greynic::lab
