#include "greynic/os/piped_command.h"

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

#include "process.h"

namespace greynic::os {
namespace {

constexpr std::chrono::milliseconds kPatience{
    2000};  ///< between closing its input, SIGTERM and SIGKILL

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

Result<PipedCommand> PipedCommand::start(const std::string& command) {
  Pipe to_child;
  Pipe from_child;
  if (!to_child.open() || !from_child.open()) return no_pipe();
  pid_t pid = -1;
  if (auto spawned = spawn(command, to_child.read, from_child.write, pid); !spawned) {
    return pass_on(spawned);
  }
  PipedCommand child(pid, std::exchange(to_child.write, -1), std::exchange(from_child.read, -1));
  ::fcntl(child.input_, F_SETFL, O_NONBLOCK);
  ::fcntl(child.output_, F_SETFL, O_NONBLOCK);
  return child;
}

PipedCommand::PipedCommand(PipedCommand&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

PipedCommand& PipedCommand::operator=(PipedCommand&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  return *this;
}

PipedCommand::~PipedCommand() {
  int status = 0;
  stop(status);
  if (output_ >= 0) ::close(output_);
}

std::optional<std::size_t> PipedCommand::write(std::string_view bytes) {
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

bool PipedCommand::read_into(std::string& buffer) {
  std::array<char, 65536> bytes{};
  const ssize_t got = ::read(output_, bytes.data(), bytes.size());
  if (got > 0) buffer.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void PipedCommand::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

std::string PipedCommand::stop(int& status) {
  if (pid_ < 0) return {};
  close_input();
  int wait_status = 0;
  if (!ends_within(pid_, kPatience, wait_status)) {
    wait_status = end_process(pid_, -pid_, kPatience);
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

}  // namespace greynic::os
