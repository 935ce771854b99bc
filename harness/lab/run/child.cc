#include "run/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "protocol/messages.h"
#include "protocol/turns.h"
#include "run/program.h"

namespace greynic::lab {
namespace {

/// Beside the program where it was built, in the library folder where it was installed.
Result<std::string> preloaded_library() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::filesystem::path& path :
       {self / "libgreynic_lab.so", self.parent_path() / GREYNIC_LAB_LIBRARY}) {
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return fail(ErrorCode::kMissing,
              fmt::format("libgreynic_lab.so is neither in {} nor at {}: install greynic whole",
                          self.string(), (self.parent_path() / GREYNIC_LAB_LIBRARY).string()));
}

std::vector<std::string> environment(const Place& place, const std::string& library) {
  std::vector<std::string> rows;
  std::string preload = library;
  for (char** row = environ; *row; ++row) {
    const std::string_view text = *row;
    if (text.starts_with("GREYNIC_LAB")) continue;
    if (text.starts_with("LD_PRELOAD=")) {
      preload += ":" + std::string(text.substr(11));
      continue;
    }
    rows.emplace_back(text);
  }
  rows.push_back("LD_PRELOAD=" + preload);
  rows.push_back(fmt::format("{}={}", kSocketVariable, place.socket));
  rows.push_back(fmt::format("{}={}", kHostVariable, place.host));
  if (!place.turns.empty()) rows.push_back(fmt::format("{}={}", kTurnsVariable, place.turns));
  if (!place.own_address.empty()) {
    rows.push_back(fmt::format("{}={}", kOwnAddressVariable, place.own_address));
  }
  return rows;
}

std::vector<char*> pointers(std::vector<std::string>& rows) {
  std::vector<char*> all;
  for (std::string& row : rows) all.push_back(row.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words, const Place& place, int output) {
  const auto library = preloaded_library();
  if (!library) return pass_on(library);
  const auto path = find_runnable(words.at(0));
  if (!path) return pass_on(path);
  std::vector<std::string> arguments = words, rows = environment(place, *library);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(rows);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::kIo, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    signal(SIGXFSZ, SIG_DFL);  // ignored for greynic's own files
    if (output >= 0) {
      dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
      dup2(output, STDOUT_FILENO);
      dup2(output, STDERR_FILENO);
    }
    execve(path->c_str(), argv.data(), envp.data());
    _exit(127);
  }
  return Child(pid, static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), ended_(std::exchange(other.ended_, -1)) {}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    pollfd wait_for{ended_, POLLIN, 0};
    if (poll(&wait_for, 1, 2000) == 0) kill(pid_, SIGKILL);
    wait();
  }
  if (ended_ >= 0) close(ended_);
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace greynic::lab
