#include "greynic/lab/lab_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "run/broker.h"
#include "run/child.h"
#include "run/program.h"
#include "run/sequencer.h"

namespace greynic::lab {
namespace {

using std::chrono::steady_clock;

DeviceCard card_of(const Device& device) {
  DeviceCard card;
  std::snprintf(card.model.data(), card.model.size(), "%s", device.model.c_str());
  card.part = device.part;
  card.link_gbps = device.link_gbps;
  return card;
}

/// Our own seat in the lab: it holds the host's RNIC, and hears who listens.
class Seat {
 public:
  static Result<Seat> take(const std::string& socket, std::uint32_t host, const DeviceCard& card) {
    const int fd = connect_to(socket);
    if (fd < 0) return fail(ErrorCode::kIo, fmt::format("lab: {}", std::strerror(errno)));
    Seat seat(fd);
    Message hello{.kind = MessageKind::kHost};
    hello.host = host;
    hello.card = card;
    Message reply;
    Descriptors none;
    if (!send_message(fd, hello) || !receive_message(fd, reply, none)) {
      return fail(ErrorCode::kIo, "the lab ended while joining it; run the command again");
    }
    if (reply.error != 0) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("host {} of this session has a {} of {} Gbit/s already; name the "
                              "same target, or another --host",
                              host, reply.card.model.data(), reply.card.link_gbps));
    }
    seat.network_ = reply.network;
    return seat;
  }
  Seat(Seat&& other) noexcept : fd_(std::exchange(other.fd_, -1)), network_(other.network_) {}
  Seat& operator=(Seat&&) = delete;
  ~Seat() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::uint32_t network() const { return network_; }

 private:
  explicit Seat(int fd) : fd_(fd) {}
  int fd_ = -1;
  std::uint32_t network_ = 0;
};

/// A broker in a thread of ours.
class OwnBroker {
 public:
  static Result<std::unique_ptr<OwnBroker>> start(const std::string& socket) {
    const int listener = listen_at(socket);
    std::array<int, 2> stop{};
    if (listener < 0 || pipe2(stop.data(), O_CLOEXEC) != 0) {
      return fail(ErrorCode::kIo, fmt::format("lab: {}", std::strerror(errno)));
    }
    return std::unique_ptr<OwnBroker>(new OwnBroker(listener, stop));
  }
  ~OwnBroker() {
    close(stop_[1]);
    thread_.join();
    close(stop_[0]);
  }
  OwnBroker(const OwnBroker&) = delete;
  OwnBroker& operator=(const OwnBroker&) = delete;

 private:
  OwnBroker(int listener, std::array<int, 2> stop)
      : stop_(stop), thread_([listener, end = stop[0]] { Broker(listener).serve(end); }) {}
  std::array<int, 2> stop_;
  std::thread thread_;
};

/// The last of what the server printed.
class Tail {
 public:
  static constexpr std::size_t kMostBytes = 64 << 10;
  Tail() {
    if (pipe2(ends_.data(), O_CLOEXEC) == 0) fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Tail() {
    close(ends_[0]);
    close_writer();
  }
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  [[nodiscard]] int reader() const { return ends_[0]; }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  /// False when nobody writes any more.
  bool drain() {
    std::array<char, 4096> part{};
    for (;;) {
      const ssize_t got = read(ends_[0], part.data(), part.size());
      if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
      text_.append(part.data(), static_cast<std::size_t>(got));
      if (text_.size() > kMostBytes) text_.erase(0, text_.size() - kMostBytes);
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::string text_;
};

struct Roles {
  const char* program;
  std::vector<std::string> server, client;
};

/// Programs that are told their role by more than a last word.
std::vector<Roles> known_roles() {
  return {{"rping", {"-s"}, {"-c", "-a"}},
          {"ucmatose", {}, {"-s"}},
          {"udaddy", {}, {"-s"}},
          {"cmtime", {}, {"-s"}},
          {"mckey", {}, {"-s"}}};
}

void add_roles(PairOptions& options) {
  if (!options.server_words.empty() || !options.client_words.empty()) return;
  const auto name = std::filesystem::path(options.command[0]).filename();
  for (const Roles& roles : known_roles()) {
    if (name != roles.program) continue;
    options.server_words = roles.server;
    options.client_words = roles.client;
  }
}

/// Waits until the child has ended or, with a seat, somebody of its host listens; reads its output
/// meanwhile. True: it has ended.
bool wait_for(const Child& child, Tail& tail, const Seat* seat,
              std::optional<std::chrono::milliseconds> patience) {
  const auto start = steady_clock::now();
  for (bool writes = true;;) {
    std::array<pollfd, 3> waits = {{{child.ended(), POLLIN, 0},
                                    {writes ? tail.reader() : -1, POLLIN, 0},
                                    {seat ? seat->fd() : -1, POLLIN, 0}}};
    int left = -1;
    if (patience) {
      const auto spent =
          std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start);
      left = static_cast<int>(std::max<std::int64_t>(0, (*patience - spent).count()));
    }
    const int count = poll(waits.data(), waits.size(), left);
    if (count == 0) return false;
    if (waits[1].revents != 0) writes = tail.drain();
    if (waits[0].revents != 0) return true;
    if (waits[2].revents != 0) return false;
  }
}

std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void show(const Tail& tail, int code) {
  if (code == 0 || tail.text().empty()) return;
  std::fprintf(stderr, "greynic lab-run: the server printed:\n%s", tail.text().c_str());
  if (!tail.text().ends_with('\n')) std::fputc('\n', stderr);
}

/// Starts the broker of a session, as a process that ends with the last of its members.
void start_session_broker(const std::string& socket) {
  const pid_t first = fork();
  if (first != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  const int listener = listen_at(socket);
  if (listener < 0) _exit(0);  // another was quicker
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != listener) close(fd);
  }
  std::signal(SIGPIPE, SIG_IGN);
  Broker(listener).serve(-1);
  _exit(0);
}

Result<Seat> join_session(const std::string& socket, std::uint32_t host, const DeviceCard& card) {
  for (int tries = 0;; ++tries) {
    auto seat = Seat::take(socket, host, card);
    if (seat || seat.error().code == ErrorCode::kBadInput || tries == 100) return seat;
    if (tries % 20 == 0) start_session_broker(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// Whether a program that reads the time-stamp counter can be stopped there. Some virtual machines take the request and
/// let it read on, so a child tries.
bool counter_can_be_taken() {
#if defined(__x86_64__)
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGSEGV, SIG_DFL);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    (void)__builtin_ia32_rdtsc();
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGSEGV;
#else
  return false;
#endif
}

Result<std::unique_ptr<Sequencer>> start_time(const PairOptions::VirtualTime& time) {
  if (counter_can_be_taken()) return Sequencer::start(time);
  return fail(ErrorCode::kMissing,
              "virtual time needs an x86-64 processor whose time-stamp counter can be taken from a "
              "program, and here programs read it all the same; run without --virtual-time, or on "
              "another machine");
}

}  // namespace

Result<int> run_pair(const PairOptions& asked) {
  PairOptions options = asked;
  add_roles(options);
  if (auto runnable = find_runnable(options.command.at(0)); !runnable) return pass_on(runnable);
  const std::string socket = fmt::format("greynic-lab-pair-{}-{}", getuid(), getpid());
  auto broker = OwnBroker::start(socket);
  if (!broker) return pass_on(broker);
  const DeviceCard card = card_of(options.device);
  auto server_seat = Seat::take(socket, 0, card);
  auto client_seat = Seat::take(socket, 1, card);
  if (!server_seat) return pass_on(server_seat);
  if (!client_seat) return pass_on(client_seat);
  const std::uint32_t network = server_seat->network();
  std::unique_ptr<Sequencer> sequencer;
  if (options.virtual_time) {
    auto started = start_time(*options.virtual_time);
    if (!started) return pass_on(started);
    sequencer = std::move(*started);
  }
  const std::string turns = sequencer ? sequencer->path() : "";

  Tail tail;
  auto server = Child::start(joined(options.command, options.server_words),
                             {socket, 0, address_text(network, 0), turns}, tail.writer());
  if (!server) return pass_on(server);
  tail.close_writer();
  if (wait_for(*server, tail, &*server_seat, {})) {
    tail.drain();
    const int code = server->wait();
    std::fputs(tail.text().c_str(), code == 0 ? stdout : stderr);
    std::fprintf(stderr,
                 "greynic lab-run: the server ended before it listened; for commands "
                 "without a client use --session\n");
    return code;
  }
  auto client = Child::start(
      joined(joined(options.command, options.client_words), {address_text(network, 0)}),
      {socket, 1, address_text(network, 1), turns}, -1);
  if (!client) return pass_on(client);
  wait_for(*client, tail, nullptr, {});
  const int client_code = client->wait();
  // A server that works as it should ends with its client.
  static constexpr std::chrono::seconds kPatience(5), kShort(1);
  const bool ended = wait_for(*server, tail, nullptr, client_code == 0 ? kPatience : kShort);
  const int server_code = ended ? server->wait() : 0;
  tail.drain();
  const int code = client_code != 0 ? client_code : server_code;
  show(tail, code);
  return code;
}

Result<int> run_in_session(const SessionOptions& options) {
  if (auto runnable = find_runnable(options.command.at(0)); !runnable) return pass_on(runnable);
  constexpr std::size_t kMostBytes = 64;  // the name of a socket has no room for more
  const bool is_plain = options.session.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789._-") == std::string::npos;
  if (!is_plain || options.session.size() > kMostBytes) {
    return fail(ErrorCode::kBadInput,
                "--session: a name of at most 64 letters, digits, '.', '_' and '-'");
  }
  const std::string socket = fmt::format("greynic-lab-{}-{}", getuid(), options.session);
  const auto seat = join_session(socket, options.host, card_of(options.device));
  if (!seat) return pass_on(seat);
  std::fprintf(stderr, "greynic lab-run: host %u of session %s has the address %s\n", options.host,
               options.session.c_str(), address_text(seat->network(), options.host).c_str());
  auto child = Child::start(options.command, {socket, options.host, "", ""}, -1);
  if (!child) return pass_on(child);
  return child->wait();
}

}  // namespace greynic::lab
