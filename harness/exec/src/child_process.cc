#include "child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace greynic::exec {
namespace {

constexpr int kPatienceMs = 2000;  ///< between closing its input, SIGTERM and SIGKILL

Result<void> spawn(const std::string& command, int child_input, int child_output, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, child_input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_output, STDOUT_FILENO);
  // Its own group: a Ctrl-C in the terminal is for greynic, which then ends the command in order.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return {};
  return fail(ErrorCode::kMissing,
              fmt::format("cannot start /bin/sh for \"{}\": {}", command, std::strerror(error)));
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::string& command) {
  std::array<int, 2> to_child{};
  std::array<int, 2> from_child{};
  if (::pipe2(to_child.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  if (::pipe2(from_child.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(to_child[0]);
    ::close(to_child[1]);
    return fail(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(error)));
  }
  pid_t pid = -1;
  auto spawned = spawn(command, to_child[0], from_child[1], pid);
  ::close(to_child[0]);
  ::close(from_child[1]);
  ChildProcess child(pid, to_child[1], from_child[0]);
  if (!spawned) return pass_on(spawned);
  ::fcntl(child.input_, F_SETFL, O_NONBLOCK);
  ::fcntl(child.output_, F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  return *this;
}

ChildProcess::~ChildProcess() {
  int status = 0;
  stop(status);
  if (output_ >= 0) ::close(output_);
}

std::optional<std::size_t> ChildProcess::write(std::string_view bytes) {
  // The command may have gone: SIGPIPE is held back around the write and then taken off the queue,
  // so that neither this process dies nor its signal settings change for others.
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(input_, bytes.data(), bytes.size());
  const int error = errno;
  if (written < 0 && error == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec at_once{};
    sigtimedwait(&pipe_signal, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (error == EAGAIN || error == EINTR) return 0;
  return std::nullopt;
}

bool ChildProcess::read_into(std::string& buffer) {
  std::array<char, 65536> bytes{};
  const ssize_t got = ::read(output_, bytes.data(), bytes.size());
  if (got > 0) buffer.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void ChildProcess::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

bool ChildProcess::wait_for(int milliseconds, int& status) {
  constexpr int kStepMs = 5;
  for (int waited = 0;; waited += kStepMs) {
    const pid_t done = ::waitpid(pid_, &status, WNOHANG);
    if (done == pid_ || (done < 0 && errno == ECHILD)) return true;
    if (waited >= milliseconds) return false;
    ::usleep(kStepMs * 1000);
  }
}

std::string ChildProcess::stop(int& status) {
  if (pid_ < 0) return {};
  close_input();
  int wait_status = 0;
  if (!wait_for(kPatienceMs, wait_status)) {
    ::kill(-pid_, SIGTERM);
    if (!wait_for(kPatienceMs, wait_status)) {
      ::kill(-pid_, SIGKILL);
      wait_for(kPatienceMs, wait_status);
    }
  }
  pid_ = -1;
  if (WIFSIGNALED(wait_status)) {
    status = 128 + WTERMSIG(wait_status);
    return fmt::format("was ended by signal {} ({})", WTERMSIG(wait_status),
                       ::strsignal(WTERMSIG(wait_status)));
  }
  status = WEXITSTATUS(wait_status);
  return fmt::format("exited with status {}", status);
}

}  // namespace greynic::exec
