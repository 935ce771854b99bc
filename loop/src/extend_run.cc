#include "greynic/loop/extend_run.h"

#include <fmt/core.h>

#include <iterator>
#include <optional>

#include "greynic/results/store.h"
#include "greynic/target/target.h"
#include "greynic/testgen/extend.h"

namespace greynic::loop {
namespace {

/// What the run's own target offers, when none was named. Opening one may start a command or a
/// switch, which planning must not do unasked; a virtual one starts nothing.
Result<void> ask_target_of(const results::RunStore& run, testgen::PlanOptions& options,
                           const Talk& talk) {
  const std::string& name = run.header().target;
  if (options.device) return {};
  if (!name.starts_with("twin:")) {
    talk.line(fmt::format("to leave out levels that {} lacks, add --target '{}'", name, name));
    return {};
  }
  auto limits = limits_of(name);
  if (!limits) return pass_on(limits);
  options.device = std::move(*limits);
  return {};
}

/// What stored runs of one campaign tell about the tests that are still open.
struct Known {
  std::vector<Observation> observations;
  std::vector<std::vector<std::string>> causes;  ///< the factors of each
  bool explained = false;
};

Result<void> add_run(const results::RunStore& run, Known& known) {
  auto observations = run.observations();
  if (!observations) return pass_on(observations);
  std::move(observations->begin(), observations->end(), std::back_inserter(known.observations));
  const auto explanation = run.best_explanation();
  if (!explanation) return pass_on(explanation);
  if (explanation->empty()) return {};
  auto causes = testgen::factors_of_causes(*explanation);
  if (!causes) return pass_on(causes);
  known.explained = true;
  std::move(causes->begin(), causes->end(), std::back_inserter(known.causes));
  return {};
}

}  // namespace

Result<testgen::DeviceLimits> limits_of(const std::string& target) {
  auto opened = target::open(target);
  if (!opened) return pass_on(opened);
  const target::Info info = (*opened)->info();
  return testgen::DeviceLimits{target, info.limits, info.categories, info.seconds_per_test,
                               info.virtual_time};
}

Result<testgen::Plan> plan_extension(const std::vector<std::string>& runs,
                                     testgen::PlanOptions options, const Talk& talk) {
  std::optional<Campaign> campaign;
  Known known;
  for (const std::string& path : runs) {
    auto store = results::RunStore::open_to_read(path);
    if (!store) return pass_on(store);
    if (!campaign) {
      auto read = store->campaign();
      if (!read) return pass_on(read);
      campaign = std::move(*read);
      if (auto asked = ask_target_of(*store, options, talk); !asked) return pass_on(asked);
    }
    if (auto added = add_run(*store, known); !added) return pass_on(added);
  }
  if (!known.explained) {
    talk.line(
        "no explanation is kept with the run: `greynic explain` finds out which factors matter");
  }
  return testgen::extend_plan(*campaign, known.observations, known.causes, options);
}

}  // namespace greynic::loop
