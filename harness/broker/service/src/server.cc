#include "server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "crossover.h"

namespace greynic::broker {
namespace {

/// Requests of one application in one turn: nobody waits for more than this of each other.
constexpr std::size_t kTakenInTurn = 256;
/// Turns between two looks at descriptors while there is work.
constexpr std::uint64_t kLookEvery = 64;
/// Turns between two looks for completions of requests that nobody waits for.
constexpr std::uint64_t kSendsEvery = 16;
constexpr std::chrono::milliseconds kTick{200};

using Clock = std::chrono::steady_clock;

void record_since(std::vector<Clock::time_point>& begun, LatencyHistogram& into) {
  if (begun.empty()) return;
  const Clock::time_point now = Clock::now();
  for (const Clock::time_point one : begun) {
    into.record(static_cast<std::uint64_t>(std::chrono::nanoseconds(now - one).count()));
  }
  begun.clear();
}

/// How far the machine is into the last fifth of its memory, 0 to 1.
double memory_load() {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  unsigned long long all = 0, free = 0, available = 0;
  const int read = std::fscanf(file, "MemTotal: %llu kB MemFree: %llu kB MemAvailable: %llu", &all,
                               &free, &available);
  std::fclose(file);
  if (read != 3 || all == 0) return 0;
  return std::clamp(1 - 5 * static_cast<double>(available) / static_cast<double>(all), 0.0, 1.0);
}

}  // namespace

Server::~Server() {
  if (door_) door_->close();
  for (const int socket : handed_) close(socket);
  applications_.clear();
  core_.reset();
  if (epoll_ >= 0) close(epoll_);
  if (handed_event_ >= 0) close(handed_event_);
}

Result<void> Server::open() {
  if (auto checked = check_options(); !checked) return checked;
  auto device = VerbsDevice::open(options_.device, options_.port, options_.gid_rule);
  if (!device) return pass_on(device);
  device_ = std::move(*device);
  auto core = Core::create(*device_, *this, options_.core);
  if (!core) return pass_on(core);
  core_ = std::move(*core);
  if (options_.measures_crossover) {
    const auto costs = measure_costs(*device_);
    if (!costs) return costs.error().while_doing("measuring what registering memory costs");
    costs_ = *costs;
  } else {
    costs_ = costs_for_crossover(options_.register_from);
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  handed_event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (auto opened = open_doors(); !opened) return opened;
  for (const int fd :
       {device_->event_fd(), device_->async_fd(), handed_event_, attachments_->listener()}) {
    watch(fd, false);
  }
  began_ = next_tick_ = Clock::now();
  for (const PeerId self : {kSelfOut, kSelfIn}) {
    if (auto added = core_->add_peer(self); !added) return added;
  }
  settle();
  return {};
}

Result<void> Server::serve(const std::atomic<bool>& stop) {
  if (options_.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(options_.cpu), &set);
    if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set)) {
      return fail(ErrorCode::kBadInput, fmt::format("--cpu {}: {}; name one that this process may "
                                                    "use",
                                                    options_.cpu, std::strerror(error)));
    }
  }
  // On a single processor others are served sooner when it sleeps.
  if (sysconf(_SC_NPROCESSORS_ONLN) == 1) options_.poll_for = {};
  Clock::time_point now = Clock::now(), worked = now;
  bool has_yielded = false;
  while (!stop.load(std::memory_order_relaxed)) {
    const bool idle = turn(now) == 0;
    now = Clock::now();
    if (now >= next_tick_) tick(now);
    if (!idle) {
      worked = now;
      has_yielded = false;
    } else if (has_yielded && now - worked > options_.poll_for) {
      sleep();
      worked = now = Clock::now();
      has_yielded = false;
      continue;
    } else {
      // Where others want this processor it is often they for whom we wait: so once at least.
      sched_yield();
      has_yielded = true;
    }
    if (turns_ % kLookEvery == 0) look(0);
  }
  return {};
}

std::size_t Server::turn(Clock::time_point now) {
  ++turns_;
  completions_.clear();
  // What nobody waits for is looked at now and then, many at a time.
  const bool also_sends = turns_ % kSendsEvery == 0 || core_->awaits() == Core::Awaits::kNow;
  std::size_t done = device_->poll(completions_, also_sends);
  if (done > 0) core_->on_completions(completions_);
  polled_ += done;
  const std::size_t taken = take_requests();
  taken_ += taken;
  done += taken;
  for (const QpNumber qp : device_->drained(now)) {
    completions_.clear();
    device_->poll(completions_);
    core_->on_completions(completions_);
    core_->on_drained(qp);
    ++done;
  }
  settle();
  return done;
}

std::size_t Server::take_requests() {
  std::size_t done = 0;
  const auto ask = [this](AppId app, const local::Request& request) { connect(app, request); };
  std::vector<AppId> broken;
  for (const auto& [id, app] : applications_) {
    if (app->socket() < 0) continue;
    const std::size_t count = app->take_requests(kTakenInTurn, ask);
    if (count > 0 || app->has_more()) touched_.push_back(id);
    if (!app->broken().empty()) broken.push_back(id);
    done += count;
  }
  for (const AppId id : broken) cut_off(id, applications_.at(id)->broken());
  return done;
}

/// Posts, and does what the core has asked for, until it asks for nothing more.
void Server::settle() {
  core_->flush();
  record_since(asked_, to_post_);
  while (!calls_.empty() || !broken_.empty() || !lost_.empty() || !unwanted_.empty()) {
    for (const auto& [app, number] : std::exchange(unwanted_, {})) (void)core_->close(app, number);
    for (const auto& [peer, why] : std::exchange(broken_, {})) peers_->hang_up(peer, why);
    for (const PeerId peer : std::exchange(lost_, {})) core_->remove_peer(peer);
    for (auto& [peer, bytes] : std::exchange(calls_, {})) {
      if (peer == kSelfOut || peer == kSelfIn) {
        core_->on_peer_call(peer == kSelfOut ? kSelfIn : kSelfOut, bytes);
      } else {
        peers_->call(peer, bytes);
      }
    }
    core_->flush();
  }
  for (const auto& [app, region] : std::exchange(returned_, {})) {
    if (const auto found = applications_.find(app); found != applications_.end()) {
      found->second->on_returned(region);
      touched_.push_back(app);
    }
  }
  deliver();
  for (const AppId id : std::exchange(detached_, {})) applications_.erase(id);
}

void Server::deliver() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  told_.clear();
  told_.swap(touched_);
  for (const AppId id : told_) {
    if (Application* app = find(id)) app->deliver();
  }
  record_since(heard_, to_tell_);
}

void Server::sleep() {
  // Each completion that wakes costs as much as a message.
  const Core::Awaits awaits = core_->awaits();
  device_->arm(awaits == Core::Awaits::kNow);
  bool idle = true, full = false;
  for (const auto& [id, app] : applications_) {
    if (app->socket() < 0) continue;
    idle = app->prepare_to_sleep() && idle;
    full = full || app->has_more();
  }
  completions_.clear();
  if (device_->poll(completions_) > 0) {
    polled_ += completions_.size();
    core_->on_completions(completions_);
    settle();
    idle = false;
  }
  if (!idle) return look(0);
  ++sleeps_;
  auto until = next_tick_;
  if (const auto drained = device_->next_drained()) until = std::min(until, *drained);
  // Nobody says when an application has read its events, so a full ring is looked at again.
  if (full || awaits == Core::Awaits::kSoon) {
    until = std::min(until, Clock::now() + std::chrono::milliseconds(1));
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  look(static_cast<int>(std::clamp<std::int64_t>(wait, 0, 1000)));
}

void Server::look(int timeout_ms) {
  std::array<epoll_event, 64> ready;
  const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), timeout_ms);
  for (int i = 0; i < count; ++i) on_ready(ready[static_cast<std::size_t>(i)].data.fd);
  if (count > 0) settle();
}

void Server::tick(Clock::time_point now) {
  next_tick_ = now + kTick;
  peers_->tick(now);
  attachments_->tick(now);
  measure_load();
  settle();
}

/// The share of all processors in use since the last time, and of the last fifth of the memory.
void Server::measure_load() {
  load_.memory = memory_load();
  std::FILE* file = std::fopen("/proc/stat", "re");
  if (file == nullptr) return;
  unsigned long long t[8] = {};
  const int read = std::fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", t, t + 1, t + 2,
                               t + 3, t + 4, t + 5, t + 6, t + 7);
  std::fclose(file);
  if (read != 8) return;
  std::uint64_t all = 0;
  for (const unsigned long long one : t) all += one;
  const std::uint64_t busy = all - t[3] - t[4];
  if (all > all_before_ && all_before_ > 0) {
    load_.processor =
        static_cast<double>(busy - busy_before_) / static_cast<double>(all - all_before_);
  }
  core_->set_load(load_);
  busy_before_ = busy;
  all_before_ = all;
}

Application* Server::find(AppId app) {
  const auto found = applications_.find(app);
  return found == applications_.end() ? nullptr : found->second.get();
}

void Server::on_incoming(AppId app, std::uint16_t port, VirtualQpn connection) {
  touched_.push_back(app);
  heard_.push_back(Clock::now());
  const PeerId peer = core_->peer_of(connection);
  const bool own = peer == kSelfOut || peer == kSelfIn;
  static constexpr std::array<std::uint8_t, 16> kHere = {0, 0, 0,    0,    0,   0, 0, 0,
                                                         0, 0, 0xff, 0xff, 127, 0, 0, 1};
  Application* found = find(app);
  if (found != nullptr && !found->may_have_more()) {
    unwanted_.emplace_back(app, connection);
  } else if (found != nullptr) {
    found->on_incoming(port, connection, core_->transport_of(connection),
                       own ? kHere : peers_->address_of(peer));
  }
}
void Server::on_open(AppId app, VirtualQpn connection) {
  touched_.push_back(app);
  heard_.push_back(Clock::now());
  if (Application* found = find(app)) found->on_open(connection);
}
void Server::on_received(AppId app, VirtualQpn connection, std::uint64_t total) {
  touched_.push_back(app);
  if (Application* found = find(app)) found->on_received(connection, total);
}
void Server::on_sent(AppId app, VirtualQpn connection, std::uint64_t total) {
  touched_.push_back(app);
  if (Application* found = find(app)) found->on_sent(connection, total);
}
void Server::on_finished(AppId app, VirtualQpn connection) {
  touched_.push_back(app);
  if (Application* found = find(app)) found->on_finished(connection);
}
void Server::on_closed(AppId app, VirtualQpn connection, int error) {
  touched_.push_back(app);
  if (Application* found = find(app)) found->on_closed(connection, error);
}
void Server::on_returned(AppId app, std::uint32_t region) { returned_.emplace_back(app, region); }
void Server::on_detached(AppId app) { detached_.push_back(app); }
void Server::call_peer(PeerId peer, std::vector<std::byte> bytes) {
  calls_.emplace_back(peer, std::move(bytes));
}
void Server::on_peer_broken(PeerId peer, const char* reason) { broken_.emplace_back(peer, reason); }

Result<std::unique_ptr<Service>> Service::start(const ServiceOptions& options) {
  auto server = std::make_unique<Server>(options);
  if (auto opened = server->open(); !opened) return pass_on(opened);
  return std::unique_ptr<Service>(std::move(server));
}

}  // namespace greynic::broker
