#include "keeper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "process.h"

namespace greynic::os {
namespace {

// Between _Fork and exec, and in the keeper for all its life, only async-signal-safe calls are
// allowed: another thread may have held any lock. So nothing is allocated, and /proc is read by
// hand.

constexpr int kStepMs = 5;
constexpr int kKillMs =
    2000;  ///< how long SIGKILL is repeated: a child in the kernel takes a while
constexpr int kNotStarted = 127;

/// Sends a signal to every child of this process. Grandchildren become children when theirs dies.
void signal_children(int number) {
  const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 4096> text{};
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  pid_t pid = 0;
  for (ssize_t i = 0; i < length; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (c >= '0' && c <= '9') {
      pid = pid * 10 + (c - '0');
    } else if (pid > 0) {  // a number that the buffer's end cuts off is left for the next round
      kill(std::exchange(pid, 0), number);
    }
  }
}

class KeeperProcess {
 public:
  KeeperProcess(pid_t shell, int life, int verdict)
      : shell_(shell), life_(life), verdict_(verdict) {}

  [[noreturn]] void run() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    const int ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    while (true) {
      reap();
      std::array<pollfd, 2> polled = {pollfd{.fd = life_, .events = POLLIN, .revents = 0},
                                      pollfd{.fd = ended, .events = POLLIN, .revents = 0}};
      if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
      if (polled[0].revents != 0) break;
      signalfd_siginfo taken;
      while (read(ended, &taken, sizeof taken) > 0) {
      }
    }
    end_all();
    _exit(0);
  }

 private:
  /// True while there are children. `someone` tells that one of them ended.
  bool reap(bool* someone = nullptr) {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (someone != nullptr) *someone = true;
      if (pid != shell_) continue;
      shell_ = -1;
      (void)!write(verdict_, &status, sizeof status);
    }
    return pid == 0;
  }

  void signal_all(int number) const {
    // The group's number is the shell's: once that is reaped, it may be anyone's.
    if (shell_ > 0) kill(-shell_, number);
    signal_children(number);
  }

  void end_all() {
    signal_all(SIGTERM);
    for (int waited = 0; waited < kKeeperPatienceMs; waited += kStepMs) {
      bool someone = false;
      if (!reap(&someone)) return;
      if (someone) signal_all(SIGTERM);  // the orphans of who ended
      pause_for_a_step();
    }
    for (int waited = 0; waited < kKillMs; waited += kStepMs) {
      signal_all(SIGKILL);
      if (!reap()) return;
      pause_for_a_step();
    }
  }

  static void pause_for_a_step() {
    const timespec step{.tv_sec = 0, .tv_nsec = kStepMs * 1'000'000};
    nanosleep(&step, nullptr);
  }

  pid_t shell_;
  int life_;
  int verdict_;
};

[[noreturn]] void become_shell(char* const* arguments, int input, int output, pid_t keeper) {
  // Its own group: a Ctrl-C in the terminal is for greynic, which then ends the command in order.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(kNotStarted);
  // By way of higher numbers: greynic may have been started without a standard input or output.
  input = fcntl(input, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  output = fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  take_usual_signals();
  execve("/bin/sh", arguments, environ);
  _exit(kNotStarted);
}

[[noreturn]] void become_keeper(char* const* arguments, int input, int output, int life,
                                int verdict) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "greynic-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGCHLD, SIG_DFL);  // ignored, it would take the shell's status away
  const pid_t self = getpid();
  const pid_t shell = _Fork();
  if (shell == 0) become_shell(arguments, input, output, self);
  if (shell < 0) _exit(kNotStarted);
  // Whatever else is open belongs to greynic: a pipe held open here would never end there.
  const auto low = static_cast<unsigned>(std::min(life, verdict));
  const auto high = static_cast<unsigned>(std::max(life, verdict));
  if (low > 0) close_range(0, low - 1, 0);
  if (high > low + 1) close_range(low + 1, high - 1, 0);
  close_range(high + 1, UINT_MAX, 0);
  KeeperProcess(shell, life, verdict).run();
}

}  // namespace

Result<Keeper> start_kept(const std::string& command, int input, int output) {
  Pipe life;
  Pipe verdict;
  if (!life.open() || !verdict.open()) return no_pipe();
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
  // The keeper is to be ended by nothing but its pipe, from its first moment on.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Not fork(): gRPC's handlers around it may wait for gRPC's threads for ever.
  const pid_t pid = _Fork();
  if (pid == 0) become_keeper(arguments.data(), input, output, life.read, verdict.write);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return fail(ErrorCode::kMissing,
                fmt::format("cannot start /bin/sh for \"{}\": {}", command, std::strerror(error)));
  }
  return Keeper{.pid = pid,
                .life = std::exchange(life.write, -1),
                .verdict = std::exchange(verdict.read, -1)};
}

}  // namespace greynic::os
