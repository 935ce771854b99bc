#include "greynic/testgen/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "greynic/language/explain_infeasible.h"
#include "greynic/testgen/campaign_model.h"
#include "greynic/testgen/compiled_campaign.h"
#include "greynic/testgen/model_cover.h"
#include "plan/row_order.h"
#include "plan/space_size.h"

namespace greynic::testgen {

using language::CoverModel;
using language::ExplainOptions;
using language::Explanations;

namespace {

/// A model design chooses among so many candidates at most.
constexpr std::uint64_t kMostCandidates = 20'000;
/// Of a deadline: what the covering array gets at least.
constexpr double kShortestSearch = 0.1;
/// Of a deadline: what is for explaining infeasible tuples, where that is asked for.
constexpr double kShareToExplain = 0.5;

/// A plan of three and more ways begins with rows that meet as much as possible that can be a
/// cause. One in so many of the rows that the largest factors alone need is made so: they cost few
/// rows more (docs/testgen/models.md).
constexpr std::size_t kRowsPerFrontRow = 25;
constexpr std::uint64_t kFrontPool = 200;

std::vector<Axis> axes_of(const CoverModel& model) {
  std::vector<Axis> axes;
  for (const language::ModelParameter& parameter : model.parameters) {
    const std::vector<double>& numbers = parameter.numbers;
    axes.push_back({static_cast<std::uint32_t>(parameter.levels.size()),
                    !numbers.empty() && std::is_sorted(numbers.begin(), numbers.end())});
  }
  return axes;
}

std::size_t front_count(std::vector<Axis> axes, int strength) {
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.levels > b.levels; });
  std::size_t rows = 1;
  for (std::size_t i = 0; i < std::min<std::size_t>(axes.size(), strength); ++i) {
    rows *= axes[i].levels;
  }
  return rows / kRowsPerFrontRow;
}

/// The model with the topology's rules only.
CoverModel topology_part(const CampaignModel& whole) {
  CoverModel part = whole.model;
  part.constraints.clear();
  part.clauses.clear();
  part.clause_where.clear();
  part.seeds.clear();
  part.groups.clear();
  return part;
}

class Planner {
 public:
  Planner(const Campaign& campaign, const PlanOptions& options)
      : campaign_(campaign), options_(options) {}

  Result<Plan> make() {
    plan_.campaign = campaign_;
    plan_.overrides = options_.overrides;
    plan_.seed = options_.seed;
    const DeviceLimits* device = options_.device ? &*options_.device : nullptr;
    auto topology = topology_of(campaign_);
    if (!topology) return pass_on(topology);
    auto model = model_of(campaign_, device, *topology);
    if (!model) return pass_on(model);
    model_ = std::move(*model);
    plan_.report.notes = model_.notes;
    // The baseline first: a campaign whose baseline is not valid has nothing to compare with.
    auto compiled = CompiledCampaign::create(campaign_, *topology);
    if (!compiled) return pass_on(compiled);
    auto baseline = compiled->complete_baseline();
    if (!baseline) return pass_on(baseline);
    plan_.campaign.baseline = *baseline;
    keep(std::move(*baseline));
    auto space = compile(model_.model);
    if (!space) return pass_on(space);
    space_ = std::move(*space);
    if (auto measured = measure_space(); !measured) return pass_on(measured);
    if (auto designed = design(*compiled); !designed) return pass_on(designed);
    if (plan_.configurations.size() > options_.most_configurations) {
      return too_big(describe(
          SpaceSize{std::log10(static_cast<double>(plan_.configurations.size())), 0, 0, true}));
    }
    plan_.report.kept = plan_.configurations.size();
    plan_.report.generation_seconds = seconds();
    if (device != nullptr) plan_.report.target_seconds = seconds_on(*device);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  void keep(Configuration configuration) {
    if (kept_.insert(configuration.name()).second) {
      plan_.configurations.push_back(std::move(configuration));
    }
  }

  void keep_rows(const std::vector<std::vector<int>>& rows) {
    for (const std::vector<int>& row : rows) keep(to_configuration(model_, row));
  }

  tl::unexpected<Error> too_big(const std::string& size) const {
    return fail(
        ErrorCode::kTooBig,
        fmt::format("{}: the plan would have {} configurations, more than {}; use a covering "
                    "design of lower strength, or fewer levels",
                    model_.model.source, size, options_.most_configurations));
  }

  Result<void> measure_space() {
    SpaceReport& report = plan_.report;
    report.raw = raw_size(model_.model);
    report.after_topology = report.raw;
    if (!campaign_.topology.empty()) {
      const CoverModel part = topology_part(model_);
      auto space = compile(part);
      if (!space) return pass_on(space);
      report.after_topology = valid_size(part, *space, {.seed = options_.seed});
    }
    if (model_.model.constraints.empty() && model_.model.clauses.empty() &&
        !campaign_.topology.empty()) {
      report.after_constraints = report.after_topology;
      return {};
    }
    report.after_constraints = valid_size(model_.model, space_, {.seed = options_.seed});
    // Two estimates may cross; what all rules leave is never more than what some leave.
    SpaceSize& size = report.after_constraints;
    size.log10 = std::min(size.log10, report.after_topology.log10);
    size.log10_low = std::min(size.log10_low, size.log10);
    return {};
  }

  Result<void> design(CompiledCampaign& campaign) {
    const Design& design = campaign_.design;
    switch (design.kind) {
      case DesignKind::kFull: {
        const SpaceSize& size = plan_.report.after_constraints;
        if (size.log10 > std::log10(static_cast<double>(options_.most_configurations)) + 1e-9) {
          return too_big(describe(size));
        }
        auto rows = all_rows(model_.model, space_, options_.most_configurations);
        if (!rows) return pass_on(rows);
        note_impossible_levels(*rows);
        keep_rows(*rows);
        return {};
      }
      case DesignKind::kRandom:
        if (design.count > options_.most_configurations) {
          return too_big(std::to_string(design.count));
        }
        keep_seeds();
        keep_rows(random_rows(model_.model, space_, design.count, options_.seed));
        return {};
      case DesignKind::kPoints:
        for (std::size_t i = 0; i < design.points.size(); ++i) {
          auto point = campaign.complete(design.points[i], fmt::format("/design/points/{}", i));
          if (!point) return pass_on(point);
          keep(std::move(*point));
        }
        return {};
      case DesignKind::kCovering:
        return covering();
      case DesignKind::kModel:
        return by_model();
    }
    return {};
  }

  void keep_seeds() {
    for (const Row& seed : space_.seeds) keep(to_configuration(model_, decode(model_.model, seed)));
  }

  Result<void> covering() {
    CoverOptions cover;
    cover.strength =
        std::min<int>(campaign_.design.strength, static_cast<int>(model_.model.parameters.size()));
    cover.seed = options_.seed;
    if (options_.deadline_seconds > 0) {
      // What is left after the topology and the sizes; a plan without a single row helps nobody.
      const double share = options_.explain_infeasible > 0 ? 1 - kShareToExplain : 1;
      cover.deadline_seconds = std::max(kShortestSearch * options_.deadline_seconds,
                                        share * (options_.deadline_seconds - seconds()));
    }
    cover.patience = options_.patience;
    cover.threads = options_.threads;
    cover.announce = options_.announce;
    cover.progress = options_.progress;
    cover.list_infeasible = options_.explain_infeasible > 0;
    cover.most_listed = options_.explain_infeasible;
    CoverModel model = model_.model;
    // The baseline is measured anyway, so what it covers need not be covered again.
    if (const auto row = row_of(plan_.configurations[0])) {
      model.seeds.insert(model.seeds.begin(), *row);
    }
    for (const Configuration& configuration : options_.already_run) {
      if (auto row = row_of(configuration)) model.already.push_back(std::move(*row));
    }
    const std::size_t given = model.seeds.size();
    const std::vector<Axis> axes = axes_of(model);
    if (cover.strength > 2 && model.already.empty()) {
      auto front = front_rows(random_rows(model_.model, space_, kFrontPool, options_.seed),
                              model.seeds, axes, front_count(axes, cover.strength),
                              [&](const LevelRow& row) { return is_valid(model, row); });
      std::move(front.begin(), front.end(), std::back_inserter(model.seeds));
    }
    const double spent = seconds();
    auto covered = cover_model(model, cover);
    if (!covered && options_.deadline_seconds > 0 && covered.error().code == ErrorCode::kTooBig) {
      return covered.error().while_doing(
          fmt::format("{}: rules and sizes took {:.2g} s of {:.3g} s", model.source, spent,
                      options_.deadline_seconds));
    }
    if (!covered) return pass_on(covered);
    SpaceReport& report = plan_.report;
    report.lower_bound = covered->summary.lower_bound;
    report.lower_bound_reason = covered->summary.lower_bound_reason;
    report.tuples_covered = covered->summary.tuples_covered;
    if (!covered->summary.full) {
      report.notes.push_back("not every tuple is covered: the deadline came first; allow more");
    }
    report.tuples_infeasible = covered->summary.tuples_infeasible;
    explain(covered->summary);
    put_likely_causes_first(covered->rows, axes, std::min(given, covered->rows.size()));
    if (covered->summary.full) {
      model.already.insert(model.already.end(), covered->rows.begin(), covered->rows.end());
      note_impossible_levels(model.already);
    }
    keep_rows(covered->rows);
    return {};
  }

  /// Says which levels of the campaign's factors no configuration can have, and why: whoever asked
  /// for them would look for their results in vain. Of the choices of a topology most lead nowhere,
  /// and are only counted. `rows` hold every level that some valid row has.
  void note_impossible_levels(const std::vector<std::vector<int>>& rows) {
    const auto& parameters = model_.model.parameters;
    std::vector<Tuple> absent;
    std::size_t of_topology = 0;
    for (std::uint32_t p = 0; p < parameters.size(); ++p) {
      std::vector<bool> there(parameters[p].levels.size(), false);
      for (const std::vector<int>& row : rows) {
        if (row[p] >= 0) there[static_cast<std::size_t>(row[p])] = true;
      }
      const bool asked_for =
          std::any_of(campaign_.factors.begin(), campaign_.factors.end(),
                      [&](const Factor& factor) { return factor.name == parameters[p].name; });
      for (std::size_t level = 0; level < there.size(); ++level) {
        if (there[level]) continue;
        if (asked_for) {
          absent.push_back({{p, static_cast<std::uint16_t>(level)}});
        } else {
          ++of_topology;
        }
      }
    }
    const Explanations explained = explain_infeasible(model_.model, absent, time_to_explain());
    for (const std::string& line : explained.lines) {
      plan_.report.notes.push_back("in no configuration: " + line);
    }
    if (explained.left > 0) {
      plan_.report.notes.push_back(fmt::format(
          "in no configuration: {} more levels; a longer deadline tells which", explained.left));
    }
    if (of_topology > 0) {
      plan_.report.notes.push_back(fmt::format(
          "in no configuration: {} choices of topology and masks; --explain-infeasible tells why",
          of_topology));
    }
  }

  /// What is left of a deadline.
  [[nodiscard]] ExplainOptions time_to_explain() const {
    ExplainOptions options;
    if (options_.deadline_seconds > 0) {
      options.deadline_seconds = options_.deadline_seconds - seconds();
    }
    return options;
  }

  void explain(const Cover& cover) {
    SpaceReport& report = plan_.report;
    ExplainOptions explain = time_to_explain();
    explain.progress = options_.explain_progress;
    Explanations explained = explain_infeasible(model_.model, cover.infeasible, explain);
    report.infeasible = std::move(explained.lines);
    const auto wanted =
        std::min<std::uint64_t>(cover.tuples_infeasible, options_.explain_infeasible);
    report.infeasible_left = wanted - std::min<std::uint64_t>(wanted, report.infeasible.size());
  }

  /// The levels of a configuration; empty when it has a value that is no level, as a baseline may.
  std::optional<std::vector<int>> row_of(const Configuration& configuration) const {
    std::vector<int> row(model_.model.parameters.size(), -1);
    for (std::size_t p = 0; p < row.size(); ++p) {
      const FactorValue* value = configuration.find(model_.model.parameters[p].name);
      if (value == nullptr) continue;
      const auto found = std::find(model_.values[p].begin(), model_.values[p].end(), *value);
      if (found == model_.values[p].end()) return std::nullopt;
      row[p] = static_cast<int>(found - model_.values[p].begin());
    }
    return row;
  }

  Result<void> by_model() {
    if (!options_.model_design) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: at /design: a design by the model '{}' needs the model room, "
                              "which this caller did not bring",
                              model_.model.source, campaign_.design.law));
    }
    keep_seeds();
    // The baseline and the seeds are measured, too.
    const std::uint64_t budget = campaign_.design.count;
    const std::uint64_t left = budget - std::min<std::uint64_t>(budget, kept_.size());
    if (left == 0) return {};
    std::vector<Configuration> candidates;
    for (const auto& row : random_rows(model_.model, space_, kMostCandidates, options_.seed)) {
      Configuration candidate = to_configuration(model_, row);
      if (!kept_.contains(candidate.name())) candidates.push_back(std::move(candidate));
    }
    auto chosen = options_.model_design(campaign_, candidates, left, options_.seed);
    if (!chosen) return pass_on(chosen);
    for (Configuration& configuration : *chosen) keep(std::move(configuration));
    return {};
  }

  double seconds_on(const DeviceLimits& device) const {
    const double measured = std::chrono::duration<double>(campaign_.measure.duration).count();
    const double one = device.seconds_per_test + (device.virtual_time ? 0.0 : measured);
    double total = one * campaign_.measure.repeats * static_cast<double>(plan_.report.kept);
    for (const Configuration& configuration : plan_.configurations) {
      for (const Factor& factor : campaign_.factors) {
        const FactorValue* value = configuration.find(factor.name);
        if (value == nullptr || factor.costs.empty()) continue;
        const auto level = std::find(factor.levels.begin(), factor.levels.end(), *value);
        if (level != factor.levels.end()) {
          total += factor.costs[static_cast<std::size_t>(level - factor.levels.begin())] *
                   campaign_.measure.repeats;
        }
      }
    }
    return total;
  }

  const Campaign& campaign_;
  const PlanOptions& options_;
  CampaignModel model_;
  Space space_;
  std::set<std::string> kept_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Plan plan_;
};

}  // namespace

std::string describe(const SpaceSize& size) {
  if (!std::isfinite(size.log10)) return "none";
  const std::string about = size.exact ? "" : "about ";
  if (size.log10 < 15.0 && size.exact) return fmt::format("{:.0f}", std::pow(10.0, size.log10));
  if (size.log10 < 6.0) return fmt::format("{}{:.0f}", about, std::pow(10.0, size.log10));
  const double exponent = std::floor(size.log10);
  return fmt::format("{}{:.1f}e{:.0f}", about, std::pow(10.0, size.log10 - exponent), exponent);
}

Result<Plan> make_plan(const Campaign& campaign, const PlanOptions& options) {
  return Planner(campaign, options).make();
}

}  // namespace greynic::testgen
