#include "greynic/os/piped_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "keeper.h"
#include "process.h"

namespace greynic::os {
namespace {

constexpr int kPatienceMs = 2000;  ///< between closing its input and ending it

/// The shell's wait status, when it comes within the limit.
std::optional<int> verdict_within(int verdict, int limit_ms) {
  pollfd waiting{.fd = verdict, .events = POLLIN, .revents = 0};
  int status = 0;
  const bool came = poll(&waiting, 1, limit_ms) > 0 &&
                    ::read(verdict, &status, sizeof status) == ssize_t{sizeof status};
  return came ? std::optional(status) : std::nullopt;
}

}  // namespace

Result<PipedCommand> PipedCommand::start(const std::string& command) {
  Pipe to_child;
  Pipe from_child;
  if (!to_child.open() || !from_child.open()) return no_pipe();
  const auto keeper = start_kept(command, to_child.read, from_child.write);
  if (!keeper) return pass_on(keeper);
  PipedCommand child;
  child.keeper_ = keeper->pid;
  child.life_ = keeper->life;
  child.verdict_ = keeper->verdict;
  child.input_ = std::exchange(to_child.write, -1);
  child.output_ = std::exchange(from_child.read, -1);
  ::fcntl(child.input_, F_SETFL, O_NONBLOCK);
  ::fcntl(child.output_, F_SETFL, O_NONBLOCK);
  return child;
}

PipedCommand::PipedCommand(PipedCommand&& other) noexcept { *this = std::move(other); }

PipedCommand& PipedCommand::operator=(PipedCommand&& other) noexcept {
  std::swap(keeper_, other.keeper_);
  std::swap(life_, other.life_);
  std::swap(verdict_, other.verdict_);
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
  if (keeper_ < 0) return {};
  close_input();
  auto wait_status = verdict_within(verdict_, kPatienceMs);
  ::close(std::exchange(life_, -1));
  if (!wait_status) wait_status = verdict_within(verdict_, 2 * kKeeperPatienceMs);
  ::close(std::exchange(verdict_, -1));
  // What the command left behind gets the same patience; the shell itself has ended.
  int keepers_own = 0;
  if (!ends_within(keeper_, std::chrono::milliseconds(3 * kKeeperPatienceMs), keepers_own)) {
    end_process(keeper_, keeper_, std::chrono::milliseconds(0));
  }
  keeper_ = -1;
  const int ended = wait_status.value_or(SIGKILL);  // who killed the keeper killed its shell
  if (WIFSIGNALED(ended)) {
    status = 128 + WTERMSIG(ended);
    return fmt::format("was ended by signal {} ({})", WTERMSIG(ended),
                       ::strsignal(WTERMSIG(ended)));
  }
  status = WEXITSTATUS(ended);
  return fmt::format("exited with status {}", status);
}

}  // namespace greynic::os
