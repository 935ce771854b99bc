/// Two layouts of one rule set on a private Open vSwitch, measured in turn under the same traffic:
///   ovs_layout_bench RULES LAYOUT.json|few-masks [uniform|zipf:1.1] [rounds]
/// prints the CPU time of a packet, the megaflow masks and the subtables searched, for both, and
/// the ratio of the costs with its 95 % interval over rounds.

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "greynic/files/core_json.h"
#include "greynic/flows/few_masks.h"
#include "greynic/flows/kinds.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"

namespace {

using namespace greynic;

constexpr std::uint64_t kSeed = 1;

template <typename T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(2);
}

void done_or_exit(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(2);
}

Observation measured(target::Target& ovs, const Layout& layout, const Traffic& traffic) {
  const auto as_written = ovs.rules().fit(layout, target::LayoutForm::kAsWritten);
  done_or_exit(ovs.rules().install(as_written, &traffic, {}));
  auto got =
      value_or_exit(target::measure_one(ovs, {.configuration = {{"message_bytes", 22.0},
                                                                {"exact_match_cache", false},
                                                                {"signature_match_cache", false}},
                                              .seed = kSeed}));
  if (got.outcome != Outcome::kMeasured) {
    fmt::print(stderr, "not measured: {}\n", got.reason);
    std::exit(1);
  }
  return got;
}

void print(std::string_view name, const Observation& got) {
  fmt::print("{:<8} {:>10.1f} ns  {:>6} masks  {:>7} megaflows  {:>7.2f} subtables searched\n",
             name, got.value("packet_cost_ns").value_or(0), got.value("megaflow_masks").value_or(0),
             got.value("megaflows").value_or(0),
             got.value("subtable_lookups_per_packet").value_or(0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: ovs_layout_bench RULES LAYOUT.json [TRAFFIC] [ROUNDS]\n");
    return 2;
  }
  const RuleSet rules = value_or_exit(rules::read_rules(argv[1]));
  const Traffic traffic =
      value_or_exit(rules::traffic_for(argc > 3 ? argv[3] : "uniform", rules, kSeed));
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  const Layout flat = flat_layout(rules);
  const Layout better = value_or_exit(
      std::string(argv[2]) == "few-masks" ? flows::few_masks(flat) : files::read_layout(argv[2]));
  const auto ovs = value_or_exit(
      flows::ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}}));
  double sum = 0;
  double squares = 0;
  for (int round = 0; round < rounds; ++round) {
    const Observation before = measured(*ovs, flat, traffic);
    const Observation after = measured(*ovs, better, traffic);
    if (round == 0) {
      print("flat", before);
      print("layout", after);
    }
    const double ratio = std::log(before.value("packet_cost_ns").value_or(0) /
                                  after.value("packet_cost_ns").value_or(1));
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / rounds;
  const double error =
      rounds > 1 ? std::sqrt(std::max(0.0, squares / rounds - mean * mean) / (rounds - 1)) : 0.0;
  fmt::print("gain {:.3f} (95 %: {:.3f} to {:.3f}, {} rounds)\n", std::exp(mean),
             std::exp(mean - 2.0 * error), std::exp(mean + 2.0 * error), rounds);
  return 0;
}
