// Ways to copy 512 words and a header behind them out of another process, one after the other in
// rounds, so that all meet the same load: medians of each way over all rounds. The goal is what
// zero_cost_bench calls process_vm_readv. Nothing is asserted.
//
// usage: zero_process_bench [rounds, 200]

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096, kValues = 4096, kHeader = 256, kPages = 64;
constexpr int kReads = 2000;  // of a way in a round

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// A process that maps memory of its own and does nothing.
struct Watched {
  Watched(std::size_t bytes, int advice) {
    file = memfd_create("watched", MFD_CLOEXEC);
    if (ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
    memory = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0));
    if (advice != 0) huge = madvise(memory, bytes, advice) == 0;
    std::memset(memory, 1, bytes);
    pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      volatile char sum = 0;
      for (std::size_t i = 0; i < bytes; i += kPage) sum = sum + memory[i];
      for (;;) pause();
    }
    usleep(20000);
  }
  ~Watched() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  int file = -1;
  char* memory = nullptr;
  pid_t pid = 0;
  bool huge = true;
};

struct Way {
  std::string name;
  std::function<bool()> read;
  std::vector<double> ns;
};

bool readv_of(pid_t pid, std::initializer_list<iovec> into, std::initializer_list<iovec> from) {
  std::size_t bytes = 0;
  for (const iovec& one : from) bytes += one.iov_len;
  return process_vm_readv(pid, into.begin(), into.size(), from.begin(), from.size(), 0) ==
         static_cast<ssize_t>(bytes);
}

void pin(pid_t pid, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(pid, sizeof set, &set);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const Watched plain(kPages * kPage, 0);
  constexpr std::size_t kHuge = 4 << 20;
  const Watched huge(kHuge, 25);  // MADV_COLLAPSE
  char* const into = static_cast<char*>(mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  char* const header = into + 2 * kPage;
  const bool locked = mlock(into, 4 * kPage) == 0;
  std::vector<char> usual(2 * kPage);
  const int mem = open(fmt::format("/proc/{}/mem", plain.pid).c_str(), O_RDONLY | O_CLOEXEC);
  const int shared = open(fmt::format("/proc/{}/fd/{}", plain.pid, plain.file).c_str(), O_RDONLY);
  auto* const mapped =
      static_cast<const char*>(mmap(nullptr, kPages * kPage, PROT_READ, MAP_SHARED, shared, 0));
  char* const values = plain.memory + 8 * kPage;
  const auto both = [&](const Watched& of, char* from, std::size_t header_bytes) {
    return readv_of(of.pid, {{into, kValues}, {header, header_bytes}},
                    {{from, kValues}, {of.memory, header_bytes}});
  };
  std::vector<Way> ways;
  const auto add = [&](std::string name, std::function<bool()> read) {
    ways.push_back({std::move(name), std::move(read), {}});
  };
  add("nothing but the clock", [] { return true; });
  add("an empty system call", [] { return syscall(SYS_getppid) > 0; });
  add("8 bytes", [&] { return readv_of(plain.pid, {{into, 8}}, {{values, 8}}); });
  add("values, no header", [&] {
    return readv_of(plain.pid, {{into, kValues}}, {{values, kValues}});
  });
  add("values and header, two pieces", [&] { return both(plain, values, kHeader); });
  add("the same, the header's moving line only", [&] { return both(plain, values, 64); });
  add("the same, values across two pages", [&] { return both(plain, values + 2048, kHeader); });
  add("the same, into memory that is not locked", [&] {
    return readv_of(plain.pid, {{usual.data(), kValues}, {usual.data() + kValues, kHeader}},
                    {{values, kValues}, {plain.memory, kHeader}});
  });
  add("the same, out of huge pages", [&] { return both(huge, huge.memory + 8 * kPage, kHeader); });
  add("the same, 64 words of values", [&] {
    return readv_of(plain.pid, {{into, 512}, {header, kHeader}},
                    {{values, 512}, {plain.memory, kHeader}});
  });
  add("one piece of values and what is behind them, two places to put them", [&] {
    return readv_of(plain.pid, {{into, kValues}, {header, 64}}, {{values, kValues + 64}});
  });
  add("the same, all within one page (448 words)", [&] {
    return readv_of(plain.pid, {{into, kValues - 512}, {header, 64}}, {{values, kValues - 448}});
  });
  add("two pread of /proc/PID/mem", [&] {
    const auto at = [](const char* address) { return reinterpret_cast<off_t>(address); };
    return pread(mem, into, kValues, at(values)) == static_cast<ssize_t>(kValues) &&
           pread(mem, header, kHeader, at(plain.memory)) == static_cast<ssize_t>(kHeader);
  });
  add("two calls of process_vm_readv", [&] {
    return readv_of(plain.pid, {{into, kValues}}, {{values, kValues}}) &&
           readv_of(plain.pid, {{header, kHeader}}, {{plain.memory, kHeader}});
  });
  add("its memfd by /proc/PID/fd, mapped", [&] {
    std::memcpy(into, mapped + 8 * kPage, kValues);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    std::memcpy(header, mapped, kHeader);
    return true;
  });
  for (int round = 0; round < rounds; ++round) {
    // Half of the rounds on the core of the watched process, half on the other one.
    pin(0, round % 2);
    pin(plain.pid, 0);
    pin(huge.pid, 0);
    for (Way& way : ways) {
      std::vector<double> times;
      for (int i = 0; i < kReads; ++i) {
        const double begin = now_ns();
        if (!way.read()) {
          fmt::print(stderr, "{}: failed\n", way.name);
          return 1;
        }
        times.push_back(now_ns() - begin);
      }
      std::nth_element(times.begin(), times.begin() + kReads / 2, times.end());
      way.ns.push_back(times[kReads / 2]);
    }
  }
  fmt::print("{} rounds of {} reads{}{}\n\n{:<72} {:>9} {:>9} {:>9}\n", rounds, kReads,
             locked ? "" : ", nothing locked", huge.huge ? "" : ", no huge pages", "way", "p50 ns",
             "best ns", "worst ns");
  for (Way& way : ways) {
    std::sort(way.ns.begin(), way.ns.end());
    fmt::print("{:<72} {:>9.0f} {:>9.0f} {:>9.0f}\n", way.name, way.ns[way.ns.size() / 2],
               way.ns.front(), way.ns.back());
  }
}
