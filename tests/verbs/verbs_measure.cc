// One observation of a verbs target as one line: bandwidth, sent bandwidth, median latency, CPU
// time a message. For scripts that compare greynic with other tools on the same device.

#include <fmt/format.h>

#include <cstdio>

#include "greynic/core/units.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"

int main(int argc, char** argv) {
  using namespace greynic;
  if (argc != 4) {
    fmt::print(stderr, "usage: verbs_measure TARGET CONFIGURATION DURATION\n");
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
