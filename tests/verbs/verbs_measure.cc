// For scripts that compare greynic with other tools on the same device: one observation of a verbs
// target as one line (bandwidth, sent bandwidth, median latency, CPU time a message), or another
// program's CPU time, to the microsecond, which no shell tells.

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "greynic/core/units.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"

namespace {

/// Runs a command and writes what it and its children used, user and system, in seconds.
int measure_cpu(const char* path, char** command) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(command[0], command);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  std::FILE* const file = std::fopen(path, "w");
  if (child < 0 || wait4(child, &status, 0, &used) < 0 || file == nullptr) {
    fmt::print(stderr, "verbs_measure: cannot run {} and write {}\n", command[0], path);
    return 1;
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  fmt::print(file, "{:.6f}\n", seconds(used.ru_utime) + seconds(used.ru_stime));
  std::fclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace greynic;
  if (argc > 3 && std::string_view(argv[1]) == "cpu") return measure_cpu(argv[2], argv + 3);
  if (argc != 4) {
    fmt::print(stderr,
               "usage: verbs_measure TARGET CONFIGURATION DURATION\n"
               "       verbs_measure cpu FILE COMMAND [ARGUMENT...]\n");
    return 2;
  }
  const auto specs = target::parse_specs(argv[1]);
  const auto configuration = parse_configuration(argv[2]);
  const auto duration = parse_duration(argv[3]);
  if (!specs || !configuration || !duration) {
    fmt::print(stderr, "verbs_measure: {}\n",
               !specs           ? specs.error().message
               : !configuration ? configuration.error().message
                                : duration.error().message);
    return 2;
  }
  const auto target = verbs::verbs_kind(nullptr).open(specs->front());
  if (!target) {
    fmt::print(stderr, "verbs_measure: {}\n", target.error().message);
    return 3;
  }
  const auto seen = target::measure_one(
      **target, {.configuration = *configuration, .duration = *duration, .seed = 1});
  if (!seen || seen->outcome != Outcome::kMeasured) {
    fmt::print(stderr, "verbs_measure: {}\n", seen ? seen->reason : seen.error().message);
    return 1;
  }
  fmt::print("{} {} {} {}\n", seen->value("sent_gbps").value_or(0),
             seen->value(measure::kBandwidth).value_or(0),
             seen->value(measure::kLatencyP50).value_or(0),
             seen->value("cpu_ns_per_message").value_or(0));
}
