/// Feeds the readers: fuzz TARGET|--all [--executions N] [--seconds S] [--seed N], or fuzz TARGET
/// FILE... for single inputs, or fuzz --list. First the seeds and what tests/fuzz/cases/TARGET
/// keeps, then changes of them. An input that ends a reader, or holds it for ten seconds of work,
/// is left as fuzz-TARGET.input in the working directory.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz.h"

namespace greynic::fuzz {
namespace {

constexpr time_t kMostSeconds = 10;             ///< of work for one input
constexpr unsigned kMostWait = 300;             ///< and of time: a busy machine is slow
constexpr rlim_t kMostBytes = rlim_t{2} << 30;  ///< of memory

std::string input_name;              ///< where the input of a crash goes
const std::string* input = nullptr;  ///< what is being read

/// Async-signal-safe.
void keep_input() {
  if (input == nullptr) return;
  const int file = ::open(input_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  (void)!::write(file, input->data(), input->size());
  ::close(file);
  (void)!::write(STDERR_FILENO, "fuzz: the input is kept in ", 27);
  (void)!::write(STDERR_FILENO, input_name.data(), input_name.size());
  (void)!::write(STDERR_FILENO, "\n", 1);
}

extern "C" void end_with(int signal) {
  keep_input();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

struct Allowance {
  std::uint64_t executions = UINT64_MAX;
  double seconds = 1e9;
  std::uint64_t seed = 1;
};

void read_one(const Target& target, const std::string& text) {
  input = &text;
  input_name = "fuzz-" + target.name + ".input";
  const itimerval work{{}, {kMostSeconds, 0}}, none{};
  ::setitimer(ITIMER_PROF, &work, nullptr);
  ::alarm(kMostWait);
  target.read(text);
  ::alarm(0);
  ::setitimer(ITIMER_PROF, &none, nullptr);
  input = nullptr;
}

void feed(const Target& target, const Allowance& allowance) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::mt19937_64 random(allowance.seed);
  std::uint64_t done = 0;
  for (const std::string& seed : target.seeds) {
    read_one(target, seed);
    ++done;
  }
  const auto any = [&]() -> const std::string& {
    return target.seeds[random() % target.seeds.size()];
  };
  for (; done < allowance.executions && elapsed() < allowance.seconds; ++done) {
    read_one(target, mutated(any(), any(), random));
  }
  std::printf("%s: %llu executions in %.1f s, seed %llu\n", target.name.c_str(),
              static_cast<unsigned long long>(done), elapsed(),
              static_cast<unsigned long long>(allowance.seed));
  std::fflush(stdout);
}

int run(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--list") {
    for (const Target& target : all_targets()) std::printf("%s\n", target.name.c_str());
    return words.empty() ? 2 : 0;
  }
  std::vector<Target> targets;
  if (words[0] == "--all") {
    targets = all_targets();
    for (Target& target : targets) add_cases(target);
  } else {
    targets.push_back(target_named(words[0]));
  }
  Allowance allowance;
  bool files = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto value = [&] { return ++i < words.size() ? words[i].c_str() : "0"; };
    if (words[i] == "--executions") {
      allowance.executions = std::strtoull(value(), nullptr, 10);
    } else if (words[i] == "--seconds") {
      allowance.seconds = std::strtod(value(), nullptr);
    } else if (words[i] == "--seed") {
      allowance.seed = std::strtoull(value(), nullptr, 10);
    } else {
      for (const Target& target : targets) read_one(target, contents_of(words[i]));
      files = true;
    }
  }
  for (const Target& target : targets) {
    if (!files) feed(target, allowance);
  }
  return 0;
}

}  // namespace
}  // namespace greynic::fuzz

#ifdef GREYNIC_FUZZ_SANITIZED
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

int main(int argc, char** argv) {
  using namespace greynic::fuzz;
#ifdef GREYNIC_FUZZ_SANITIZED
  __sanitizer_set_death_callback(&keep_input);
#else
  const rlimit memory{kMostBytes, kMostBytes};
  ::setrlimit(RLIMIT_AS, &memory);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, end_with);
#endif
  for (const int signal : {SIGABRT, SIGALRM, SIGPROF}) std::signal(signal, end_with);
  return run({argv + 1, argv + argc});
}
