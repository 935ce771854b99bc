#include "greynic/monitor/agent.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <list>
#include <map>

#include "directory.h"
#include "greynic/daemon/hang_up.h"
#include "greynic/daemon/log.h"
#include "greynic/zero/table.h"
#include "link.h"

namespace greynic::monitor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostConnections = 1024;
constexpr rlim_t kMostFiles = kMostConnections + Directory::kRows + 64;
// So that one who floods leaves time for others.
constexpr int kMessagesPerTurn = 16;
constexpr int kAcceptsPerTurn = 64;

/// An arena that was handed over. Its file keeps its memory alive when its owner has ended.
struct Held {
  int file = -1;
  std::uint64_t bytes = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t metric_class = 0;
  std::uint32_t row = 0;
  uid_t user = 0;
  int socket = -1;  ///< of its program; -1: it has ended
  Clock::time_point ended;
  std::string name;
};

struct Connection {
  int socket = -1;
  ucred peer{};
  bool is_silent = true;  ///< has handed over nothing and collects nothing
  bool collects = false;
  std::uint32_t classes = 0;
};

}  // namespace

struct Agent::State {
  explicit State(const AgentOptions& asked) : options(asked) {}
  ~State() {
    for (const Held& held : arenas) ::close(held.file);
    for (const Connection& one : connections) daemon::hang_up(one.socket);
    // Who was not accepted may have sent descriptors too.
    daemon::close_apart(listening);
    if (made_socket) ::unlink(options.socket.c_str());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  AgentOptions options;
  std::unique_ptr<Directory> directory;
  int listening = -1;
  bool made_socket = false;
  std::list<Held> arenas;
  std::list<Connection> connections;
  std::uint64_t refused = 0;

  void tell(const std::string& line) const {
    if (options.tell) options.tell(line);
  }
  Result<void> listen();
  void accept();
  void take_in(Connection one);
  bool make_room(uid_t user, bool of_all);
  void hear(Connection& from, bool& gone);
  std::string take(const Connection& from, const Received& received, Held& into) const;
  void begin_collecting(Connection& to, std::uint32_t classes);
  bool may_see(const Connection& who, const Held& arena) const;
  void show(const Connection& to, const Held& arena) const;
  void forget(const Connection& gone);
  void remove_ended();
};

Result<void> Agent::State::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& path = options.socket;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kBadInput, fmt::format("--socket '{}': a path of 1 to 107 bytes", path));
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return fail(ErrorCode::kBadInput, path + ": is there and is no socket; name another path");
    }
    const int other = connect_to(path);
    const int error = other < 0 ? errno : 0;
    if (other >= 0) ::close(other);
    if (error == 0 || error == EAGAIN) {
      return fail(ErrorCode::kIo, path + ": another agent serves there");
    }
    if (error != ECONNREFUSED) {  // what a dead agent left refuses
      return fail(ErrorCode::kBadInput,
                  path + ": is the socket of another program; name another path");
    }
    ::unlink(path.c_str());
  } else {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  }
  listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening < 0 ||
      ::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(ErrorCode::kIo, fmt::format("{}: cannot listen: {}", path, std::strerror(errno)));
  }
  made_socket = true;
  // Any user may come: who it is, the kernel says.
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listening, SOMAXCONN) != 0) {
    return fail(ErrorCode::kIo, fmt::format("{}: cannot listen: {}", path, std::strerror(errno)));
  }
  return {};
}

void Agent::State::accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Connection one;
    one.socket = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (one.socket >= 0) {
      take_in(one);
    } else if ((errno != EMFILE && errno != ENFILE) || !make_room(0, true)) {
      return;
    }
  }
}

void Agent::State::take_in(Connection one) {
  socklen_t bytes = sizeof one.peer;
  std::uint32_t of_user = 0;
  bool known = ::getsockopt(one.socket, SOL_SOCKET, SO_PEERCRED, &one.peer, &bytes) == 0;
  for (const Connection& other : connections) of_user += other.peer.uid == one.peer.uid ? 1 : 0;
  if (of_user >= options.connections_of_user) known = known && make_room(one.peer.uid, false);
  if (connections.size() >= kMostConnections) known = known && make_room(0, true);
  if (!known) {
    ++refused;
    tell(fmt::format("turned away: user {} has {} connections", one.peer.uid, of_user));
    daemon::hang_up(one.socket);
    return;
  }
  connections.push_back(one);
  // What it says at once counts before others come who may push it out.
  bool gone = false;
  hear(connections.back(), gone);
  if (!gone) return;
  forget(connections.back());
  connections.pop_back();
}

/// Cuts whoever has been silent for longest: whoever idles keeps nobody out.
bool Agent::State::make_room(uid_t user, bool of_all) {
  const auto idle = std::find_if(connections.begin(), connections.end(), [&](const auto& one) {
    return one.is_silent && (of_all || one.peer.uid == user);
  });
  if (idle == connections.end()) return false;
  daemon::hang_up(idle->socket);
  connections.erase(idle);
  ++refused;
  return true;
}

/// Why an arena is not taken; empty: it is, and its file is ours.
std::string Agent::State::take(const Connection& from, const Received& received, Held& into) const {
  const zero_link_message& message = received.message;
  struct stat status {};
  const int seals = received.file < 0 ? -1 : ::fcntl(received.file, F_GET_SEALS);
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & kNeeded) != kNeeded || ::fstat(received.file, &status) != 0) {
    return "an arena is a memfd with F_SEAL_SHRINK and F_SEAL_GROW";
  }
  // Its owner could punch a hole that no page of the pool can fill any more.
  struct statfs system {};
  if (::fstatfs(received.file, &system) != 0 || system.f_type == HUGETLBFS_MAGIC) {
    return "an arena does not lie in a hugetlb pool";
  }
  std::array<std::byte, sizeof(zero_header)> bytes{};
  if (::pread(received.file, bytes.data(), bytes.size(), 0) != sizeof bytes) {
    return "the arena is shorter than its header";
  }
  const auto header = zero::parse_header(bytes, ZERO_KIND_ARENA);
  if (!header) return header.error().message;
  into.bytes = static_cast<std::uint64_t>(status.st_size);
  if (header->bytes != into.bytes || header->incarnation != message.incarnation ||
      header->metric_class != message.metric_class) {
    return "the arena is not the one that its message names";
  }
  if (header->metric_class == ZERO_SYSTEM && from.peer.uid != 0 && from.peer.uid != ::geteuid()) {
    return "metrics of class system come from root or the agent's own user";
  }
  std::uint64_t bytes_of_user = into.bytes;
  std::uint32_t arenas_of_user = 1;
  for (const Held& other : arenas) {
    if (other.incarnation == header->incarnation) return "this arena is here already";
    if (other.user != from.peer.uid) continue;
    bytes_of_user += other.bytes;
    ++arenas_of_user;
  }
  if (bytes_of_user > options.bytes_of_user || arenas_of_user > options.arenas_of_user) {
    return fmt::format("user {} would have {} arenas of {} bytes; the quota is {} of {}",
                       from.peer.uid, arenas_of_user, bytes_of_user, options.arenas_of_user,
                       options.bytes_of_user);
  }
  into.incarnation = header->incarnation;
  into.metric_class = header->metric_class;
  into.user = from.peer.uid;
  into.socket = from.socket;
  into.name = header->name;
  return {};
}

void Agent::State::hear(Connection& from, bool& gone) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    const auto received = receive_message(from.socket, gone);
    if (!received) return;
    const zero_link_message& message = received->message;
    if (message.kind == ZERO_LINK_COLLECT && received->file < 0) {
      begin_collecting(from, message.metric_class);
      continue;
    }
    if (message.kind != ZERO_LINK_ARENA) {
      daemon::close_apart(received->file);
      gone = true;
      return;
    }
    Held held;
    std::string why = take(from, *received, held);
    std::optional<std::uint32_t> row;
    if (why.empty()) {
      row = directory->add({0, held.incarnation, held.bytes, 0, 0, held.metric_class,
                            static_cast<std::uint32_t>(from.peer.pid), held.user, ZERO_ARENA_LIVE,
                            0, 0});
      if (!row) why = "the directory is full";
    }
    zero_link_message answer = make_message(ZERO_LINK_ANSWER, why);
    answer.incarnation = message.incarnation;
    answer.error = why.empty() ? 0 : EDQUOT;
    send_message(from.socket, answer);
    if (!row) {
      ++refused;
      tell(fmt::format("not taken: an arena of process {}: {}", from.peer.pid, daemon::plain(why)));
      daemon::close_apart(received->file);
      continue;
    }
    from.is_silent = false;
    held.file = received->file;
    held.row = *row;
    arenas.push_back(held);
    for (const Connection& to : connections) {
      if (to.collects) show(to, arenas.back());
    }
  }
}

bool Agent::State::may_see(const Connection& who, const Held& arena) const {
  const bool trusted = who.peer.uid == 0 || who.peer.uid == ::geteuid();
  return (who.classes >> arena.metric_class & 1) != 0 && (trusted || who.peer.uid == arena.user);
}

void Agent::State::show(const Connection& to, const Held& arena) const {
  if (!may_see(to, arena)) return;
  zero_link_message message = make_message(ZERO_LINK_SHOWN, arena.name);
  message.incarnation = arena.incarnation;
  message.metric_class = arena.metric_class;
  message.row = arena.row;
  // Who takes no more is behind for good: it comes anew.
  if (!send_message(to.socket, message, arena.file)) ::shutdown(to.socket, SHUT_RDWR);
}

void Agent::State::begin_collecting(Connection& to, std::uint32_t classes) {
  to.is_silent = false;
  to.collects = true;
  to.classes = classes;
  zero_link_message message = make_message(ZERO_LINK_SHOWN, "directory");
  message.incarnation = directory->incarnation();
  message.row = UINT32_MAX;
  send_message(to.socket, message, directory->file());
  for (const Held& arena : arenas) show(to, arena);
}

void Agent::State::forget(const Connection& gone) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  for (Held& held : arenas) {
    if (held.socket != gone.socket) continue;
    held.socket = -1;
    held.ended = Clock::now();
    directory->end(held.row, static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                                 static_cast<std::uint64_t>(now.tv_nsec));
  }
  daemon::hang_up(gone.socket);
}

void Agent::State::remove_ended() {
  const auto now = Clock::now();
  std::erase_if(arenas, [&](const Held& held) {
    if (held.socket >= 0 || now - held.ended < options.linger) return false;
    directory->remove(held.row);
    ::close(held.file);
    return true;
  });
}

Agent::Agent(std::unique_ptr<State> state) : state_(std::move(state)) {}
Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options) {
  // A program and its arena are a descriptor each; the usual limit of 1,024 is for who uses select().
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::max(files.rlim_cur, std::min<rlim_t>(files.rlim_max, kMostFiles));
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  auto state = std::make_unique<State>(options);
  auto directory = Directory::create();
  if (!directory) return pass_on(directory);
  state->directory = std::move(*directory);
  if (auto done = state->listen(); !done) return pass_on(done);
  return std::unique_ptr<Agent>(new Agent(std::move(state)));
}

void Agent::serve(const std::atomic<bool>& stop) {
  State& s = *state_;
  std::vector<pollfd> waiting;
  while (!stop) {
    waiting.assign(1, {s.listening, POLLIN, 0});
    for (const Connection& one : s.connections) waiting.push_back({one.socket, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), static_cast<int>(s.options.beat.count()));
    std::size_t i = 1;
    for (auto one = s.connections.begin(); one != s.connections.end();) {
      bool gone = false;
      // What has come before an end counts: a program of a millisecond has handed over, and gone.
      if (i < waiting.size() && waiting[i++].revents != 0) s.hear(*one, gone);
      if (gone) s.forget(*one);
      one = gone ? s.connections.erase(one) : std::next(one);
    }
    s.accept();
    s.remove_ended();
    s.directory->beat();
  }
}

std::span<const std::byte> Agent::directory() const { return state_->directory->memory(); }

Agent::Counts Agent::counts() const {
  Counts counts{state_->arenas.size(), 0, 0, state_->refused};
  for (const Connection& one : state_->connections) {
    ++(one.collects ? counts.collectors : counts.programs);
  }
  return counts;
}

}  // namespace greynic::monitor
