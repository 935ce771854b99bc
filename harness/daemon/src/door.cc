#include "greynic/daemon/door.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "listening.h"
#include "visitors.h"

namespace greynic::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::seconds kTellEvery{10};
constexpr int kAcceptsPerTurn = 64;  ///< so that a flood does not keep the thread from its guests
// Numbers of visitors begin at 1; listening sockets and both ends of relays are told from them by the
// upper bits.
constexpr std::uint64_t kWake = 0;
constexpr std::uint64_t kListening = std::uint64_t{1} << 63;
constexpr std::uint64_t kOuter = std::uint64_t{1} << 62;
constexpr std::uint64_t kInner = std::uint64_t{1} << 61;

}  // namespace

struct Door::State {
  State(const DoorLimits& limits, Hand hand_to, Tell tell_to)
      : hand(std::move(hand_to)),
        tell(std::move(tell_to)),
        half_closed_stay(limits.half_closed_stay),
        visitors(limits) {}
  ~State() {
    for (const int socket : listening) ::close(socket);
    if (poll >= 0) ::close(poll);
    if (wake >= 0) ::close(wake);
  }

  Hand hand;
  Tell tell;
  bool half_closed_stay;
  std::vector<int> listening;
  std::string address;
  int poll = -1;
  int wake = -1;
  mutable std::mutex mutex;
  Visitors visitors;  ///< under the mutex
  bool resting = false;
  Clock::time_point last_told = Clock::now();
  std::uint64_t cut_told = 0;
  std::atomic<bool> over = false;
  std::thread thread;

  void run() {
    std::array<epoll_event, 64> events;
    while (!over) {
      const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(kTick.count()));
      for (int i = 0; i < count && !over; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if ((event.data.u64 & kListening) != 0) {
          take_all(static_cast<int>(event.data.u64 & ~kListening));
        } else if ((event.data.u64 & (kOuter | kInner)) != 0) {
          const auto end = (event.data.u64 & kOuter) != 0 ? Relay::End::kOuter : Relay::End::kInner;
          const std::lock_guard lock(mutex);
          visitors.carry(event.data.u64 & ~(kOuter | kInner), end, event.events);
        } else if (event.data.u64 != kWake) {
          look_at(event.data.u64, event.events);
        }
      }
      tick();
    }
  }

  void watch(int socket, std::uint64_t number, std::uint32_t what, int how = EPOLL_CTL_ADD) const {
    epoll_event event{};
    event.events = what;
    event.data.u64 = number;
    epoll_ctl(poll, how, socket, &event);
  }

  void listen_on(bool on) {
    resting = !on;
    for (const int socket : listening) {
      watch(socket, kListening | static_cast<std::uint64_t>(socket),
            on ? std::uint32_t{EPOLLIN} : 0U, EPOLL_CTL_MOD);
    }
  }

  void take_all(int from) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      sockaddr_storage far{};
      socklen_t length = sizeof far;
      const int socket =
          accept4(from, reinterpret_cast<sockaddr*>(&far), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) {
        const int error = errno;
        if (error == ECONNABORTED || error == EINTR) continue;
        if (error == EAGAIN) return;
        // No descriptor or memory is left. One that waits goes; if there is none, others of this
        // process hold them, and it is tried again soon.
        const std::lock_guard lock(mutex);
        if (visitors.cut_one()) continue;
        listen_on(false);
        return;
      }
      const int on = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const std::lock_guard lock(mutex);
      Visitors::Visitor visitor{.socket = socket,
                                .peer = text_of(far, true),
                                .address = text_of(far, false),
                                .since = Clock::now()};
      visitors.make_room(visitor.address);
      watch(socket, visitors.add(std::move(visitor)), EPOLLIN | EPOLLRDHUP);
    }
  }

  void look_at(std::uint64_t number, std::uint32_t what) {
    int handed = -1;
    {
      const std::lock_guard lock(mutex);
      Visitors::Visitor* const visitor = visitors.find(number);
      if (visitor == nullptr) return;  // cut in the same turn
      char first = 0;
      const bool speaks = visitor->stage == Visitors::Stage::kSilent &&
                          recv(visitor->socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
      if (!speaks) {
        if ((what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) visitors.forget(number);
        return;
      }
      handed = visitors.counts_bytes() ? hand_on_by_relay(number, *visitor)
                                       : hand_on_itself(number, *visitor);
    }
    if (handed < 0) return;
    // Without the lock: who takes it may ask about it at once.
    hand(handed);
  }

  /// -1 without descriptors: it was forgotten.
  int hand_on_itself(std::uint64_t number, const Visitors::Visitor& visitor) {
    const int kept = fcntl(visitor.socket, F_DUPFD_CLOEXEC, 0);
    if (kept < 0) return visitors.forget(number), -1;
    // The duplicate stays here, to hear of its end and to cut it.
    epoll_ctl(poll, EPOLL_CTL_DEL, visitor.socket, nullptr);
    watch(kept, number, half_closed_stay ? 0U : std::uint32_t{EPOLLRDHUP});
    return visitors.hand_on(number, kept);
  }

  int hand_on_by_relay(std::uint64_t number, const Visitors::Visitor& visitor) {
    int given = -1;
    epoll_ctl(poll, EPOLL_CTL_DEL, visitor.socket, nullptr);
    auto relay =
        Relay::open(visitor.socket, visitor.peer,
                    {.poll = poll, .outer = number | kOuter, .inner = number | kInner}, given);
    if (!relay) return visitors.forget(number), -1;
    visitors.hand_on(number, std::move(relay));
    visitors.carry(number, Relay::End::kOuter,
                   EPOLLIN);  // what it has said is there when it is served
    return given;
  }

  void tick() {
    const Clock::time_point now = Clock::now();
    std::string told;
    {
      const std::lock_guard lock(mutex);
      visitors.cut_late(now);
      if (resting) listen_on(true);
      if (now - last_told < kTellEvery) return;
      last_told = now;
      const std::uint64_t cut = visitors.counts().cut;
      if (cut == cut_told) return;
      told = fmt::format(
          "{} connections were cut that proved nothing in time, were too many or said too much; "
          "most of them from {}",
          cut - cut_told, visitors.most_cut());
      cut_told = cut;
    }
    if (tell) tell(told);
  }
};

Door::Door(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Door>> Door::open(const std::string& listen, const DoorLimits& limits,
                                         Hand hand, Tell tell) {
  auto state = std::make_unique<State>(limits, std::move(hand), std::move(tell));
  auto sockets = listen_at(listen);
  if (!sockets) return pass_on(sockets);
  state->listening = std::move(sockets->sockets);
  state->address = std::move(sockets->address);
  state->poll = epoll_create1(EPOLL_CLOEXEC);
  state->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->poll < 0 || state->wake < 0) {
    return fail(ErrorCode::kIo, fmt::format("cannot watch sockets: {}", std::strerror(errno)));
  }
  state->watch(state->wake, kWake, EPOLLIN);
  for (const int socket : state->listening) {
    state->watch(socket, kListening | static_cast<std::uint64_t>(socket), EPOLLIN);
  }
  state->thread = std::thread([raw = state.get()] { raw->run(); });
  return std::unique_ptr<Door>(new Door(std::move(state)));
}

Door::~Door() { close(); }

void Door::close() {
  state_->over = true;
  eventfd_write(state_->wake, 1);
  if (state_->thread.joinable()) state_->thread.join();
  for (const int socket : state_->listening) ::close(socket);
  state_->listening.clear();
  const std::lock_guard lock(state_->mutex);
  state_->visitors.cut_all();
}

const std::string& Door::address() const { return state_->address; }

bool Door::proven(const std::string& peer) {
  const std::lock_guard lock(state_->mutex);
  return state_->visitors.make_guest(peer);
}

bool Door::is_open(const std::string& peer) const {
  const std::lock_guard lock(state_->mutex);
  return state_->visitors.find(peer) != nullptr;
}

void Door::cut(const std::string& peer) {
  const std::lock_guard lock(state_->mutex);
  state_->visitors.cut(peer);
}

Door::Counts Door::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->visitors.counts();
}

}  // namespace greynic::daemon
