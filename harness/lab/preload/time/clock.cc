// The clocks of a process in virtual time. The time-stamp counter traps; calls of the C library are
// answered here. Calls that may wait for somebody outside the lab say so, so that time can go on.
// Before a process joins virtual time, and in all other labs, the calls are those of the C library.

#include "preload/time/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "preload/time/turns.h"

namespace greynic::lab::turns {
namespace {

bool runs = false;
double counts_per_ns = 1;
std::int64_t epoch_s = 0;

/// What the calls take: a loop that waits for a time must get there.
constexpr double kClockNs = 20, kCounterNs = 1;

template <typename Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
}

/// Programs hold the counter against what the kernel says of it.
double megahertz() {
  double found = 1000;
  if (FILE* const file = std::fopen("/proc/cpuinfo", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file)) {
      if (std::sscanf(line, "cpu MHz : %lf", &found) == 1) break;
    }
    std::fclose(file);
  }
  return found;
}

#if defined(__x86_64__)
/// The kernel's own page of calls reads the counter for the C library's inside: that stays real.
bool in_kernels_page(std::uintptr_t at) {
  static const auto begin = static_cast<std::uintptr_t>(getauxval(AT_SYSINFO_EHDR));
  return at - begin < 4 * 4096;
}

std::uint64_t real_counter() {
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  const std::uint64_t count = __builtin_ia32_rdtsc();
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  return count;
}

void on_trap(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const at = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  const bool reads = at[0] == 0x0F && at[1] == 0x31;                         // RDTSC
  const bool reads_and_waits = at[0] == 0x0F && at[1] == 0x01 && at[2] == 0xF9;  // RDTSCP
  if (!reads && !reads_and_waits) {
    std::signal(SIGSEGV, SIG_DFL);  // a real fault: it happens again, and ends the program
    return;
  }
  const std::uint64_t count =
      in_kernels_page(static_cast<std::uintptr_t>(registers[REG_RIP]))
          ? real_counter()
          : static_cast<std::uint64_t>(std::llround(clock_ns(kCounterNs) * counts_per_ns));
  registers[REG_RAX] = static_cast<greg_t>(count & 0xFFFFFFFFU);
  registers[REG_RDX] = static_cast<greg_t>(count >> 32);
  if (reads_and_waits) registers[REG_RCX] = 0;
  registers[REG_RIP] += reads ? 2 : 3;
}

void trap_counter() {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
#else
void trap_counter() {}  // lab-run refuses virtual time on this architecture
#endif

std::int64_t whole_ns() { return std::llround(clock_ns(kClockNs)); }

bool is_socket(int fd) {
  struct stat found {};
  return fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode);
}

/// Around a call that may wait for others: time goes on without this process.
template <typename Call>
auto outside(bool matters, Call call) {
  if (!runs || !matters) return call();
  Question().ask(Ask::kBlocks);
  const auto result = call();
  const int error = errno;
  Question().ask(Ask::kAwake);
  errno = error;
  return result;
}

/// After a call that may wake others.
template <typename Result>
Result told(int fd, Result result) {
  if (!runs || !is_socket(fd)) return result;
  const int error = errno;
  Question().ask(Ask::kWrote);
  errno = error;
  return result;
}

void sleep_ns(double ns) {
  Question question;
  question->number = static_cast<std::uint64_t>(std::max(0.0, ns));
  question.ask(Ask::kSleep);
}

}  // namespace

void start_clock() {
  counts_per_ns = megahertz() * 1e-3;
  epoch_s = std::time(nullptr);
  runs = true;
  trap_counter();
  // A child has no seat: its clocks are real again.
  pthread_atfork(nullptr, nullptr, [] {
    runs = false;
#if defined(__x86_64__)
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
#endif
  });
}

}  // namespace greynic::lab::turns

using namespace greynic::lab;
using namespace greynic::lab::turns;

#define GREYNIC_EXPORTED __attribute__((visibility("default")))

extern "C" {

GREYNIC_EXPORTED int clock_gettime(clockid_t clock, timespec* out) {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const bool of_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (!runs || of_cpu || clock < 0) return real(clock, out);
  const bool of_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const std::int64_t ns = whole_ns();
  *out = {(of_day ? epoch_s : 0) + ns / 1'000'000'000, ns % 1'000'000'000};
  return 0;
}

GREYNIC_EXPORTED int gettimeofday(timeval* out, void* zone) noexcept {
  static const auto real = next<int (*)(timeval*, void*)>("gettimeofday");
  if (!runs) return real(out, zone);
  const std::int64_t us = whole_ns() / 1000;
  *out = {epoch_s + us / 1'000'000, us % 1'000'000};
  return 0;
}

GREYNIC_EXPORTED int clock_nanosleep(clockid_t clock, int flags, const timespec* wish,
                                     timespec* left) {
  static const auto real =
      next<int (*)(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (!runs) return real(clock, flags, wish, left);
  double ns = static_cast<double>(wish->tv_sec) * 1e9 + static_cast<double>(wish->tv_nsec);
  if (flags & TIMER_ABSTIME) {
    ns -= clock_ns(0) + (clock == CLOCK_REALTIME ? static_cast<double>(epoch_s) * 1e9 : 0);
  }
  sleep_ns(ns);
  return 0;
}

GREYNIC_EXPORTED int nanosleep(const timespec* wish, timespec* left) {
  static const auto real = next<int (*)(const timespec*, timespec*)>("nanosleep");
  return runs ? clock_nanosleep(CLOCK_MONOTONIC, 0, wish, left) : real(wish, left);
}

GREYNIC_EXPORTED int usleep(useconds_t us) {
  static const auto real = next<int (*)(useconds_t)>("usleep");
  if (!runs) return real(us);
  sleep_ns(1e3 * us);
  return 0;
}

GREYNIC_EXPORTED unsigned sleep(unsigned seconds) {
  static const auto real = next<unsigned (*)(unsigned)>("sleep");
  if (!runs) return real(seconds);
  sleep_ns(1e9 * seconds);
  return 0;
}

GREYNIC_EXPORTED unsigned alarm(unsigned seconds) noexcept {
  static const auto real = next<unsigned (*)(unsigned)>("alarm");
  if (!runs) return real(seconds);
  Question question;
  question->number = seconds;
  question.ask(Ask::kAlarm);
  return 0;
}

GREYNIC_EXPORTED ssize_t read(int fd, void* into, std::size_t most) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  return outside(runs && is_socket(fd), [&] { return real(fd, into, most); });
}

GREYNIC_EXPORTED ssize_t recv(int fd, void* into, std::size_t most, int flags) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, int)>("recv");
  return outside(true, [&] { return real(fd, into, most, flags); });
}

GREYNIC_EXPORTED int accept(int fd, sockaddr* from, socklen_t* bytes) {
  static const auto real = next<int (*)(int, sockaddr*, socklen_t*)>("accept");
  return outside(true, [&] { return real(fd, from, bytes); });
}

GREYNIC_EXPORTED ssize_t write(int fd, const void* from, std::size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return told(fd, real(fd, from, count));
}

GREYNIC_EXPORTED ssize_t send(int fd, const void* from, std::size_t count, int flags) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, int)>("send");
  return told(fd, real(fd, from, count, flags));
}

}  // extern "C"
