#include "process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace greynic::os {

Pipe::~Pipe() {
  close_read();
  close_write();
}

bool Pipe::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read = ends[0];
  write = ends[1];
  return true;
}

bool Pipe::open_socket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  read = ends[0];
  write = ends[1];
  return true;
}

void Pipe::close_read() {
  if (read >= 0) close(std::exchange(read, -1));
}

void Pipe::close_write() {
  if (write >= 0) close(std::exchange(write, -1));
}

tl::unexpected<Error> no_pipe() {
  return fail(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
}

void take_usual_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_DFL);
}

bool ends_within(pid_t child, std::chrono::milliseconds patience, int& status) {
  constexpr std::chrono::milliseconds kStep{5};
  for (auto waited = std::chrono::milliseconds{0};; waited += kStep) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno == ECHILD)) return true;
    if (waited >= patience) return false;
    std::this_thread::sleep_for(kStep);
  }
}

int end_process(pid_t child, pid_t whom, std::chrono::milliseconds patience) {
  int status = 0;
  kill(whom, SIGTERM);
  if (ends_within(child, patience, status)) return status;
  kill(whom, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace greynic::os
