/// What a law says that a layout gains, beside what the twin then measures:
///
///     greynic run mask_wall --target twin:cx6 -o run.db
///     layout_gain_bench cx6 run.db [CASES] [SEED]
///
/// Each case draws filters of a family, their number, traffic, growth, hop, verb, message and QPs. The law is that of the
/// run with the tests that `greynic tune` adds before it predicts. A line a case:
/// bandwidth and median latency of the rules in order and of the layout, predicted and measured, and how far the
/// gain is off; at the end how it would be if only the mean number of masks counted. Nothing is asserted.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "greynic/loop/gain.h"
#include "greynic/loop/mask_ladder.h"
#include "greynic/loop/rule_input.h"
#include "greynic/model/model.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/results/store.h"
#include "greynic/rules/traffic.h"
#include "greynic/statistics/random.h"
#include "greynic/twin/twin.h"

namespace {

using namespace greynic;

struct Case {
  std::string rules, traffic;
  double growth = 1.5;
  Hop hop = Hop::kServerDecap;
  Configuration at;
};

Case draw(statistics::Random& random) {
  constexpr std::array<const char*, 3> kFamilies = {"acl", "fw", "ipc"};
  constexpr std::array<const char*, 4> kTraffic = {"uniform", "zipf:0.7", "zipf:1.1", "zipf:1.5"};
  constexpr std::array<double, 3> kGrowth = {1.0, 1.5, 2.0};
  constexpr std::array<const char*, 3> kVerbs = {"SEND", "WRITE", "READ"};
  constexpr std::array<double, 4> kBytes = {4096, 16384, 65536, 1048576}, kQps = {1, 4, 16, 64};
  const auto one_of = [&](const auto& list) {
    return list[random.below(static_cast<std::uint32_t>(list.size()))];
  };
  Case made;
  const auto count = static_cast<int>(std::exp2(4 + 7 * random.uniform()));
  made.rules = fmt::format("made:{}:{}:{}", one_of(kFamilies), count, 1 + random.below(1000000));
  made.traffic = one_of(kTraffic);
  made.growth = one_of(kGrowth);
  made.hop = random.below(2) == 0 ? Hop::kServerDecap : Hop::kClientEncap;
  made.at.set("operation", std::string(one_of(kVerbs)));
  made.at.set("message_bytes", one_of(kBytes));
  made.at.set("qp_count", one_of(kQps));
  return made;
}

struct Tally {
  int within = 0, count = 0;
  double worst = 0;
  void add(double error) {
    ++count;
    within += std::abs(error) <= 0.1;
    worst = std::max(worst, std::abs(error));
  }
};

/// The law of the run, and of even masks under the traffic of this case.
Result<std::unique_ptr<model::Model>> law_for(const Case& one,
                                              std::vector<Observation> observations, double most,
                                              target::Target& device) {
  Configuration at = one.at;
  at.set(mask_factor(one.hop), 0.0);
  for (const Configuration& rung : loop::mask_ladder(at, one.hop, most, 0)) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      auto seen = target::measure_one(device, {.configuration = rung, .repeat = repeat, .seed = 9});
      if (!seen) return pass_on(seen);
      observations.push_back(std::move(*seen));
    }
  }
  auto fitted = model::fit(observations, {.form = model::Form::kPipeline,
                                          .intervals = model::Intervals::kCovariance,
                                          .cross_validate = false});
  if (!fitted) return pass_on(fitted);
  return std::move(fitted->model);
}

Result<void> try_one(int index, const Case& one, const std::vector<Observation>& run,
                     target::Target& device, std::array<Tally, 2>& tallies,
                     std::array<Tally, 2>& by_mean) {
  const auto rules = loop::load_rules({one.rules, ""}, {});
  if (!rules) return pass_on(rules);
  const auto traffic = rules::traffic_for(one.traffic, *rules, 1);
  if (!traffic) return pass_on(traffic);
  const double most =
      optimizer::cost_of(optimizer::layout_in_rule_order(*rules), *traffic).most_matchers_tried;
  const auto law = law_for(one, run, most, device);
  if (!law) return pass_on(law);
  const model::Model& model = **law;
  optimizer::OptimizeOptions options;
  options.max_growth = one.growth;
  options.limits = device.rules().limits();
  options.cost = optimizer::mask_cost(model, one.at, one.hop);
  const auto made = optimizer::optimize(*rules, *traffic, options);
  if (!made) return pass_on(made);
  const auto before =
      device.rules().fit(optimizer::layout_in_rule_order(*rules), target::LayoutForm::kAsWritten);
  const auto after = device.rules().fit(made->layout);
  loop::GainQuestion question{.before = &before, .after = &after, .traffic = &*traffic};
  question.placement = {one.hop};
  question.at = one.at;
  question.metric = "bandwidth_gbps";
  question.duration = std::chrono::seconds(1);
  question.pairs = 5;
  const auto gain = loop::measure_gain(device, question, false, {});
  if (!gain) return pass_on(gain);
  fmt::print("{:3} {:22} {:8} x{} hop {} {}  tried {:.1f} ({}) -> {:.1f} ({})", index, one.rules,
             one.traffic, one.growth, static_cast<int>(one.hop), one.at.name(),
             made->before.matchers_tried, made->before.most_matchers_tried,
             made->after.matchers_tried, made->after.most_matchers_tried);
  constexpr std::array<const char*, 2> kMeasures = {"bandwidth_gbps", "latency_us_p50"};
  for (std::size_t m = 0; m < kMeasures.size(); ++m) {
    const std::string name = kMeasures[m];
    const double old_said = made->before.prediction->measures.at(name).value,
                 new_said = made->after.prediction->measures.at(name).value;
    const double old_is = gain->measures_before.at(name), new_is = gain->measures_after.at(name);
    const double error = new_said / old_said / (new_is / old_is) - 1;
    tallies[m].add(error);
    const auto even = [&](const optimizer::LayoutCost& cost) {
      Configuration at = one.at;
      at.set(mask_factor(one.hop), cost.matchers_tried);
      return model.predict(at)->measures.at(name).value;
    };
    by_mean[m].add(even(made->after) / even(made->before) / (new_is / old_is) - 1);
    fmt::print("; {:.4g} is {:.4g} -> {:.4g} is {:.4g}, {:+.1f} %", old_said, old_is, new_said,
               new_is, 100 * error);
  }
  fmt::print("\n");
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: layout_gain_bench RNIC RUN.db [CASES] [SEED]\n");
    return 2;
  }
  target::register_kind(twin::kind());
  auto device = target::open(std::string("twin:") + argv[1]);
  const auto store = results::RunStore::open_to_read(argv[2]);
  if (!device || !store) {
    fmt::print(stderr, "{}\n", device ? store.error().message : device.error().message);
    return 2;
  }
  const auto run = store->observations();
  if (!run) {
    fmt::print(stderr, "{}\n", run.error().message);
    return 2;
  }
  const int cases = argc > 3 ? std::atoi(argv[3]) : 100;
  statistics::Random random(argc > 4 ? static_cast<std::uint64_t>(std::atoll(argv[4])) : 1);
  std::array<Tally, 2> tallies, by_mean;
  for (int i = 0; i < cases; ++i) {
    const Case one = draw(random);
    if (const auto tried = try_one(i, one, *run, **device, tallies, by_mean); !tried) {
      fmt::print("{:3} {}: {}\n", i, one.rules, tried.error().message);
    }
  }
  const auto print = [&](const char* how, const std::array<Tally, 2>& of) {
    fmt::print(
        "{}, {}: gains within 10 %: bandwidth {} of {}, worst {:.0f} %; latency {} of {}, worst "
        "{:.0f} %\n",
        argv[1], how, of[0].within, of[0].count, 100 * of[0].worst, of[1].within, of[1].count,
        100 * of[1].worst);
  };
  print("as they are", tallies);
  print("by the mean", by_mean);
}
