#include "run/process_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace greynic::lab {
namespace {

/// The letter of its state; 0: no such process.
char state_of(std::uint32_t pid) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 256> text{};
  const ssize_t got = read(fd, text.data(), text.size() - 1);
  close(fd);
  const char* const name_ends = got > 0 ? std::strrchr(text.data(), ')') : nullptr;
  return name_ends && name_ends[1] == ' ' ? name_ends[2] : '\0';
}

}  // namespace

std::chrono::nanoseconds cpu_time(std::uint32_t pid) {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 ||
      clock_gettime(clock, &spent) != 0) {
    return {};
  }
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

bool is_alive(std::uint32_t pid) {
  const char state = state_of(pid);
  return state != 0 && state != 'Z' && state != 'X';
}

bool is_asleep(std::uint32_t pid) { return state_of(pid) == 'S'; }

}  // namespace greynic::lab
