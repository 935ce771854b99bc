#pragma once

/// A plan: the configurations that a campaign measures, in order, and how they were chosen. The
/// baseline always comes first, because every wall is judged against it; no configuration occurs
/// twice; each one satisfies every constraint of the campaign, of its topology and of RDMA itself.
///
/// Nothing here touches a device: what a target offers is handed in as DeviceLimits, and designs
/// that need a fitted model are asked for through a callback.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/result.h"
#include "greynic/testgen/cover.h"

namespace greynic::testgen {

/// How many configurations a space has. Spaces of RNICs have more than a double can count, so it is
/// kept as a power of ten.
struct SpaceSize {
  double log10 = 0.0;      ///< of the number; negative infinity: the space is empty
  double log10_low = 0.0;  ///< 95 % interval when the size was sampled, else the same
  double log10_high = 0.0;
  bool exact = true;
};

/// "1440", "3.1e57", "about 2e31": for people.
[[nodiscard]] std::string describe(const SpaceSize& size);

struct SpaceReport {
  SpaceSize raw;  ///< product of all level counts, conditional factors as if always there
  SpaceSize after_topology;     ///< configurations that forward; equals raw without a topology
  SpaceSize after_constraints;  ///< what every rule and constraint leaves
  std::size_t kept = 0;         ///< configurations in the plan, the baseline included
  std::size_t lower_bound = 0;  ///< no covering plan has fewer; 0 for designs that cover nothing
  std::string lower_bound_reason;
  std::uint64_t tuples_covered = 0;
  std::uint64_t tuples_infeasible = 0;
  /// With PlanOptions::explain_infeasible: infeasible tuples and what forbids them, and how many of
  /// those asked for the time left out. Not kept with the plan.
  std::vector<std::string> infeasible;
  std::size_t infeasible_left = 0;
  double generation_seconds = 0.0;
  std::optional<double> target_seconds;  ///< to run the plan; empty when no target was asked
  std::vector<std::string> notes;        ///< for people: rules that joined, levels the target lacks
};

/// What a target can do, taken from its target::Info. Numeric levels beyond `largest` and
/// categories that are not listed are left out of the plan, and the report says so.
struct DeviceLimits {
  std::string target;                                          ///< its name, for messages
  std::map<std::string, double> largest;                       ///< by numeric factor
  std::map<std::string, std::vector<std::string>> categories;  ///< by categorical factor
  double seconds_per_test = 0.0;                               ///< beyond the measured duration
  bool virtual_time = false;                                   ///< measured durations cost nothing
};

/// Chooses at most `budget` of `candidates` (all valid, none twice, the baseline not among them)
/// for a design that follows a model; the model room supplies it.
using ModelDesign = std::function<Result<std::vector<Configuration>>(
    const Campaign& campaign, std::span<const Configuration> candidates, std::uint64_t budget,
    std::uint64_t seed)>;

struct PlanOptions {
  std::uint64_t seed = 1;
  double deadline_seconds =
      0.0;  ///< 0: one greedy pass; else the covering array is improved till then
  /// Without a deadline: times the usual work that brought no smaller array. For who pays dearly for a row.
  double patience = 1.0;
  int threads = 1;
  std::uint64_t most_configurations = 1'000'000;  ///< a larger plan is refused with its size
  /// Of a covering design: explain so many infeasible tuples, in half of the deadline or a minute.
  std::size_t explain_infeasible = 0;
  std::optional<DeviceLimits> device;      ///< empty: no target was asked
  std::vector<std::string> overrides;      ///< as given to --set, kept with the plan
  std::vector<Configuration> already_run;  ///< their tuples count as covered
  ModelDesign model_design;                ///< for Design::kModel; may be empty
  /// Told once before a covering array is made; may be empty.
  std::function<void(const CoverEstimate&)> announce;
  std::function<void(double share_done, std::size_t configurations)> progress;     ///< may be empty
  std::function<void(double share_done, std::size_t explained)> explain_progress;  ///< may be empty
};

struct Plan {
  Campaign campaign;                          ///< as planned: overrides applied
  std::vector<std::string> overrides;         ///< that were applied to the campaign's file
  std::vector<Configuration> configurations;  ///< the baseline first
  SpaceReport report;
  std::uint64_t seed = 0;
};

/// Chooses the configurations of a campaign by its design.
/// Errors: kBadInput (a constraint that does not parse, a baseline that breaks a rule: it says
/// which), kInfeasible (nothing is valid: it names the constraints), kTooBig (says how big).
[[nodiscard]] Result<Plan> make_plan(const Campaign& campaign, const PlanOptions& options);

/// The plan format of docs/formats/plan.md.
[[nodiscard]] Result<void> write_plan(const Plan& plan, const std::string& path);
[[nodiscard]] std::string plan_to_json_text(const Plan& plan);
[[nodiscard]] Result<Plan> read_plan(const std::string& path);

}  // namespace greynic::testgen
