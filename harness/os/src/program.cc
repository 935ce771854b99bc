#include "greynic/os/program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "process.h"

namespace greynic::os {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostSaid = 1UL << 30U;  ///< of one program: ten million rules of a switch

/// argv and envp are made before fork: after it only async-signal-safe calls are allowed.
struct Prepared {
  std::string path;
  std::vector<std::string> words;
  std::vector<std::string> settings;
  std::vector<char*> argv;
  std::vector<char*> envp;
};

Result<Prepared> prepare(const Command& command) {
  Prepared ready;
  ready.path = find_program(command.words.front());
  if (ready.path.empty()) {
    return fail(ErrorCode::kMissing,
                fmt::format("program {} is not installed", command.words.front()));
  }
  ready.words = command.words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view setting = *entry;
    if (!command.environment.contains(std::string(setting.substr(0, setting.find('='))))) {
      ready.settings.emplace_back(setting);
    }
  }
  for (const auto& [name, value] : command.environment)
    ready.settings.push_back(name + "=" + value);
  for (std::string& word : ready.words) ready.argv.push_back(word.data());
  for (std::string& setting : ready.settings) ready.envp.push_back(setting.data());
  ready.argv.push_back(nullptr);
  ready.envp.push_back(nullptr);
  return ready;
}

enum class Talk : std::uint8_t { kOver, kTooLate, kTooMuch };

/// Feeds and drains the three pipes until the program closed its ends.
Talk converse(Pipe& in, Pipe& out, Pipe& err, std::string_view input, std::string& said,
              std::string& complained, Clock::time_point deadline) {
  if (input.empty()) in.close_write();
  while (out.read >= 0 || err.read >= 0) {
    pollfd waiting[3] = {
        {in.write, POLLOUT, 0}, {out.read, POLLIN, 0}, {err.read, POLLIN, 0}};  // -1 is skipped
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Talk::kTooLate;
    if (poll(waiting, 3, static_cast<int>(std::min<std::int64_t>(left, INT_MAX))) < 0 &&
        errno != EINTR) {
      return Talk::kTooLate;
    }
    if (waiting[0].revents != 0) {
      const ssize_t count = send(in.write, input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
      const bool broken = count < 0 && errno != EAGAIN && errno != EINTR;
      if (input.empty() || broken) in.close_write();
    }
    char buffer[65536];
    const auto drain = [&](Pipe& pipe, const pollfd& state, std::string& text) {
      if (state.revents == 0) return;
      const ssize_t count = read(pipe.read, buffer, sizeof buffer);
      if (count > 0) {
        text.append(buffer, static_cast<std::size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        pipe.close_read();
      }
    };
    drain(out, waiting[1], said);
    drain(err, waiting[2], complained);
    if (said.size() > kMostSaid || complained.size() > kMostSaid) return Talk::kTooMuch;
  }
  return Talk::kOver;
}

/// The end of what a program complained about: the cause stands in its last lines.
std::string last_lines(const std::string& text) {
  constexpr std::size_t kMost = 600;
  std::string tail = text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string folders = std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin:/usr/bin:/bin";
  while (!folders.empty()) {
    const std::size_t cut = folders.find(':');
    const std::string folder = folders.substr(0, cut);
    folders = cut == std::string::npos ? "" : folders.substr(cut + 1);
    std::string candidate = folder + "/" + name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

Result<std::string> run(const Command& command) {
  auto ready = prepare(command);
  if (!ready) return pass_on(ready);
  Pipe in;
  Pipe out;
  Pipe err;
  if (!in.open_socket() || !out.open() || !err.open()) return no_pipe();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::kIo, fmt::format("cannot fork: {}", std::strerror(errno)));
  if (pid == 0) {
    // Its own group, so that what it started can be ended with it; and none of it outlives us. The
    // thread that forks waits here, so its end is ours.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    dup2(in.read, 0);
    dup2(out.write, 1);
    dup2(err.write, 2);
    take_usual_signals();
    execve(ready->path.c_str(), ready->argv.data(), ready->envp.data());
    _exit(127);
  }
  in.close_read();
  out.close_write();
  err.close_write();
  std::string said;
  std::string complained;
  const Talk talk =
      converse(in, out, err, command.input, said, complained, Clock::now() + command.timeout);
  // Both sides of the fork may be first to make the group.
  if (talk != Talk::kOver && kill(-pid, SIGKILL) != 0) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (talk == Talk::kTooMuch) {
    return fail(ErrorCode::kTooBig, fmt::format("{} printed more than {} MiB",
                                                command.words.front(), kMostSaid >> 20U));
  }
  if (talk == Talk::kTooLate) {
    return fail(ErrorCode::kIo, fmt::format("{} did not end within {} ms", command.words.front(),
                                            command.timeout.count()));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::kRefused,
                fmt::format("{}: {}", command.words.front(), last_lines(complained)));
  }
  return said;
}

Result<Daemon> Daemon::start(const Command& command, const std::string& log_path,
                             const NetworkNamespace& place) {
  auto ready = prepare(command);
  if (!ready) return pass_on(ready);
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) {
    return fail(ErrorCode::kIo, fmt::format("cannot write {}: {}", log_path, std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || setns(place.descriptor(), CLONE_NEWNET) != 0) _exit(126);
    // Ctrl-C in the terminal is ours to handle: a daemon that dies first would lose the run's rest.
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(log, 1);
    dup2(log, 2);
    take_usual_signals();
    execve(ready->path.c_str(), ready->argv.data(), ready->envp.data());
    _exit(127);
  }
  const int error = errno;
  close(log);
  if (pid < 0) return fail(ErrorCode::kIo, fmt::format("cannot fork: {}", std::strerror(error)));
  return Daemon(pid);
}

Daemon::Daemon(Daemon&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Daemon& Daemon::operator=(Daemon&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

Daemon::~Daemon() { stop(); }

bool Daemon::running() {
  if (pid_ < 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

void Daemon::stop() {
  if (pid_ < 0) return;
  end_process(pid_, pid_, std::chrono::milliseconds(2000));
  pid_ = -1;
}

}  // namespace greynic::os
