// What monitors do to the latency of a service that answers `GET k` as Redis does. Each round gives
// every monitor a block of time of its own, in an order of chance, and then one more in the reverse
// order (ABBA), while the others are stopped (SIGSTOP); so what the host does besides meets all of
// them alike, and what drifts cancels out. Answers are timed from when their request was due. Nothing
// is asserted.
//
// Ratios are those of two blocks of a round; what is told of them is the median, which a block that
// the host has stalled does not move. All answers as one stand beside it, with the slowest: there a
// stall counts for as long as it was.
//
// usage: zero_interference_bench PORT ROUNDS BLOCK_MS REQUESTS_A_SECOND NAME:PID,PID... NAME:...
// The first one is what the others are compared with; one without a PID is nobody. Run it, the
// service and the monitors before all other work (case_studies.py does).

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

struct Monitor {
  std::string name;
  std::vector<pid_t> pids;
  std::vector<double> p50, p99;  // of each block, us
  std::vector<double> answers;   // all, us
  void signal_all(int signal) const {
    for (const pid_t pid : pids) kill(pid, signal);
  }
};

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void sleep_until_us(double due) {
  const auto ns = static_cast<std::int64_t>(due * 1e3);
  const timespec at{ns / 1'000'000'000, ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "zero_interference_bench: {}\n", why);
  std::exit(2);
}

void ask(int service, const std::string& line) {
  char answer[256];
  if (write(service, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      read(service, answer, sizeof answer) <= 0) {
    stop("the service has gone");
  }
}

int connected(int port) {
  const int service = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (connect(service, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      setsockopt(service, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    stop(fmt::format("nobody answers at port {}", port));
  }
  ask(service, "SET k v\r\n");
  return service;
}

/// Latencies in us, sorted.
std::vector<double> block(int service, double length_us, double period_us) {
  std::vector<double> found;
  double due = now_us() + period_us;
  for (const double end = due + length_us; due < end; due += period_us) {
    const double early = due - now_us();
    if (early > 0) sleep_until_us(due);
    // A wake that comes late is the client's own; a request that waited for the last answer is not.
    const double begin = early > 0 ? now_us() : due;
    ask(service, "GET k\r\n");
    found.push_back(now_us() - begin);
  }
  std::sort(found.begin(), found.end());
  return found;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The median and its 95 % interval by ranks, which holds whatever the distribution is.
std::string with_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double rank) {
    return values[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))];
  };
  const double half = 0.98 * std::sqrt(count);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", at(count / 2), at(count / 2 - half),
                     at(count / 2 + half));
}

Monitor monitor_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) stop("NAME:PID,PID...");
  Monitor made;
  made.name = text.substr(0, colon);
  for (std::size_t at = colon + 1; at < text.size();) {
    std::size_t end = text.find(',', at);
    if (end == std::string::npos) end = text.size();
    made.pids.push_back(std::atoi(text.substr(at, end - at).c_str()));
    if (made.pids.back() <= 0) stop(text + ": is no process");
    at = end + 1;
  }
  return made;
}

void row(const Monitor& one, const Monitor& alone) {
  std::vector<double> p50, p99;
  for (std::size_t i = 0; i < one.p50.size(); ++i) {
    p50.push_back(one.p50[i] / alone.p50[i]);
    p99.push_back(one.p99[i] / alone.p99[i]);
  }
  std::vector<double> all = one.answers;
  std::sort(all.begin(), all.end());
  fmt::print("| {} | {:.1f} us | {:.1f} us | {} | {} | {:.1f} us | {:.0f} us |\n", one.name,
             median(one.p50), median(one.p99), with_interval(p50), with_interval(p99),
             all[all.size() * 99 / 100], all.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) stop("PORT ROUNDS BLOCK_MS REQUESTS_A_SECOND NAME:PID,PID...");
  const auto rounds = static_cast<std::size_t>(std::atoi(argv[2]));
  const double length_us = std::atof(argv[3]) * 1e3, period_us = 1e6 / std::atof(argv[4]);
  std::vector<Monitor> monitors;
  for (int i = 5; i < argc; ++i) monitors.push_back(monitor_of(argv[i]));
  const int service = connected(std::atoi(argv[1]));
  prctl(PR_SET_TIMERSLACK, 1UL);
  for (const Monitor& one : monitors) one.signal_all(SIGSTOP);
  std::mt19937 chance(1);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < monitors.size(); ++i) order.push_back(i);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), chance);
    std::vector<std::size_t> there_and_back = order;
    there_and_back.insert(there_and_back.end(), order.rbegin(), order.rend());
    for (const std::size_t which : there_and_back) {
      Monitor& one = monitors[which];
      one.signal_all(SIGCONT);
      usleep(10000);  // it takes up its work
      const auto times = block(service, length_us, period_us);
      one.signal_all(SIGSTOP);
      one.p50.push_back(times[times.size() / 2]);
      one.p99.push_back(times[times.size() * 99 / 100]);
      one.answers.insert(one.answers.end(), times.begin(), times.end());
    }
  }
  for (const Monitor& one : monitors) one.signal_all(SIGCONT);
  fmt::print("{} rounds, two blocks of {} ms each, {} requests a second\n\n", rounds, argv[3],
             argv[4]);
  fmt::print(
      "| beside the service | p50 | p99 | p50 over alone [95 %] | p99 over alone [95 %] | p99 of "
      "all "
      "answers | slowest |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Monitor& one : monitors) row(one, monitors.front());
}
