#pragma once

/// From a campaign file and a target's name to a run on disk: what `greynic run` and every command
/// that measures a campaign do. prepare() reads the campaign, plans and opens the target, and
/// writes nothing; start() creates the run file or goes on with it.
///
/// Two runs with one plan seed and two measure seeds measure the same configurations independently
/// of each other, so they can be compared.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/campaign/run.h"
#include "greynic/results/store.h"
#include "greynic/target/target.h"
#include "greynic/testgen/plan.h"

namespace greynic::campaign {

struct Job {
  std::string file;        ///< a campaign, or a plan that `greynic plan -o` wrote
  std::string target;      ///< "twin:cx6"
  std::string out;         ///< run file; empty: results/<date>-<campaign>/run.db
  std::string command;     ///< as typed, kept with the run for its report
  std::uint64_t seed = 1;  ///< of the plan and the measurements, unless set below
  std::optional<std::uint64_t> plan_seed;
  std::optional<std::uint64_t> measure_seed;
  std::vector<std::string> overrides;  ///< "factor=level,level"; not with a plan
  int threads = 1;                     ///< for planning
  testgen::ModelDesign model_design;   ///< for designs that follow a model; may be empty
  std::function<void(double share_done, std::size_t configurations)> progress;  ///< of the planning

  [[nodiscard]] std::uint64_t seed_of_plan() const { return plan_seed.value_or(seed); }
  [[nodiscard]] std::uint64_t seed_of_measurements() const { return measure_seed.value_or(seed); }
};

struct Prepared {
  testgen::Plan plan;
  std::unique_ptr<target::Target> device;
  target::Info info;
  results::RunHeader header;
  std::string out;
  /// Every setting as used, in the order to be printed: (name, value).
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Where what a campaign of this name makes goes unless it is told: results/<date>-<name>.
[[nodiscard]] std::string default_folder(const std::string& name);

/// Errors: kBadInput and kMissing with file, path and remedy, as the parts say them.
[[nodiscard]] Result<Prepared> prepare(const Job& job);

/// Opens the run to be measured, making its folder if need be, and keeps the plan with it.
/// kBadInput when the file holds another run.
[[nodiscard]] Result<results::RunStore> start(const Prepared& prepared);

/// RunOptions as the campaign says them.
[[nodiscard]] RunOptions options_of(const Prepared& prepared);

}  // namespace greynic::campaign
