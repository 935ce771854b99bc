#include "greynic/testgen/compiled_campaign.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "greynic/language/explain_infeasible.h"
#include "greynic/testgen/campaign_model.h"
#include "greynic/testgen/model_cover.h"
#include "validity/space_solver.h"

namespace greynic::testgen {

namespace {

/// Values that are no levels become some.
void widen(Campaign& campaign, const Configuration& values) {
  for (Factor& factor : campaign.factors) {
    const FactorValue* value = values.find(factor.name);
    if (value == nullptr) continue;
    if (std::ranges::find(factor.levels, *value) != factor.levels.end()) continue;
    factor.levels.push_back(*value);
    factor.weights.clear();
    factor.costs.clear();
  }
}

bool has_levels_for(const CampaignModel& model, const Configuration& values) {
  return std::ranges::all_of(values.levels(), [&](const auto& one) {
    const auto parameter = model.model.find(one.first);
    return !parameter || level_of(model, *parameter, one.second) >= 0;
  });
}

}  // namespace

struct CompiledCampaign::Compiled {
  Compiled(CampaignModel given, Space clauses)
      : model(std::move(given)), space(std::move(clauses)), solver(space) {}

  CampaignModel model;
  Space space;
  SpaceSolver solver;
};

CompiledCampaign::CompiledCampaign(const Campaign& campaign,
                                   std::shared_ptr<const Topology> topology)
    : campaign_(campaign), topology_(std::move(topology)) {
  // They are for covering arrays; completing has no use for them.
  campaign_.seeds.clear();
  campaign_.design.groups.clear();
  widen(campaign_, campaign_.baseline);
}

CompiledCampaign::CompiledCampaign(CompiledCampaign&&) noexcept = default;
CompiledCampaign& CompiledCampaign::operator=(CompiledCampaign&&) noexcept = default;
CompiledCampaign::~CompiledCampaign() = default;

Result<CompiledCampaign> CompiledCampaign::create(const Campaign& campaign) {
  auto topology = topology_of(campaign);
  if (!topology) return pass_on(topology);
  return create(campaign, std::move(*topology));
}

Result<CompiledCampaign> CompiledCampaign::create(const Campaign& campaign,
                                                  std::shared_ptr<const Topology> topology) {
  CompiledCampaign out(campaign, std::move(topology));
  if (auto made = out.compile_for({}); !made) return pass_on(made);
  return out;
}

/// With the values of one question among the levels, and those of no other.
Result<void> CompiledCampaign::compile_for(const Configuration& part) {
  Campaign wide = campaign_;
  widen(wide, part);
  auto model = model_of(wide, nullptr, topology_);
  if (!model) return pass_on(model);
  auto space = compile(model->model);
  if (!space) return pass_on(space);
  compiled_ = std::make_unique<Compiled>(std::move(*model), std::move(*space));
  return {};
}

/// The levels that a parameter may take when nobody asked for one, the best first: as in the
/// baseline, else near to that. Levels beyond the campaign's came with some question.
std::vector<int> CompiledCampaign::by_preference(std::uint32_t p) const {
  const CampaignModel& model = compiled_->model;
  const language::ModelParameter& parameter = model.model.parameters[p];
  const std::size_t own =
      p < campaign_.factors.size() ? campaign_.factors[p].levels.size() : parameter.levels.size();
  std::vector<int> levels(own);
  std::iota(levels.begin(), levels.end(), 0);
  const FactorValue* baseline = campaign_.baseline.find(parameter.name);
  if (baseline != nullptr) {
    const int best = level_of(model, p, *baseline);
    const auto distance = [&](int level) {
      if (level == best) return -1.0;
      return parameter.numbers.empty()
                 ? 0.0
                 : std::abs(number_of(model.model, p, level) - std::get<double>(*baseline));
    };
    std::ranges::stable_sort(levels, {}, distance);
  }
  // What the baseline does not have is best left out.
  const int absent = compiled_->space.parameters[p].absent_level;
  if (absent >= 0) levels.insert(baseline == nullptr ? levels.begin() : levels.end(), absent);
  return levels;
}

Result<Configuration> CompiledCampaign::complete(const Configuration& part,
                                                 const std::string& what) {
  if (!has_levels_for(compiled_->model, part)) {
    if (auto made = compile_for(part); !made) return pass_on(made);
  }
  const CampaignModel& model = compiled_->model;
  const auto count = static_cast<std::uint32_t>(model.values.size());
  std::vector<int> asked(count, -1);
  std::vector<int> nearest(count, -1);
  std::vector<std::vector<int>> preferred(count);
  std::vector<Literal> settled;
  bool others = false;  // levels of earlier questions
  for (std::uint32_t p = 0; p < count; ++p) {
    const std::string& name = model.model.parameters[p].name;
    if (const FactorValue* value = part.find(name)) {
      asked[p] = level_of(model, p, *value);
      if (asked[p] < 0) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: {}: {} is no level of {}", model.model.source, what,
                                to_string(*value), name));
      }
    } else {
      preferred[p] = by_preference(p);
      nearest[p] = preferred[p].front();
    }
    // All other levels are out; a parameter whose condition does not hold is still left out.
    for (int level = 0; level < static_cast<int>(model.values[p].size()); ++level) {
      if (level == asked[p] || std::ranges::count(preferred[p], level) > 0) continue;
      settled.push_back({p, static_cast<std::uint16_t>(level), false});
      others = others || asked[p] < 0;
    }
  }
  SpaceSolver& solver = compiled_->solver;
  solver.prefer(nearest);
  auto row = solver.solve(settled);
  if (!row && others) {  // the message must not reckon with them
    if (auto made = compile_for(part); !made) return pass_on(made);
    return complete(part, what);
  }
  if (!row) {
    return fail(ErrorCode::kInfeasible,
                fmt::format("{}: {} ({}) breaks the constraints: {}", model.model.source, what,
                            part.name(), describe_conflict(model.model, asked)));
  }
  for (std::uint32_t p = 0; p < count; ++p) {
    for (const int level : preferred[p]) {
      settled.push_back({p, static_cast<std::uint16_t>(level), true});
      if ((*row)[p] == level) break;  // the row at hand shows that it may be
      if (auto closer = solver.solve(settled)) {
        row = std::move(closer);
        break;
      }
      settled.pop_back();
    }
  }
  Configuration out = to_configuration(model, decode(model.model, *row));
  for (const auto& [name, value] : part.levels()) {
    if (!model.model.find(name)) out.set(name, value);
  }
  return out;
}

bool CompiledCampaign::allows(const Configuration& whole) {
  if (!has_levels_for(compiled_->model, whole)) {
    if (!compile_for(whole)) return false;
  }
  const CampaignModel& model = compiled_->model;
  std::vector<Literal> settled;
  for (std::uint32_t p = 0; p < model.values.size(); ++p) {
    const FactorValue* value = whole.find(model.model.parameters[p].name);
    const int absent = compiled_->space.parameters[p].absent_level;
    const int level = value != nullptr ? level_of(model, p, *value) : absent;
    if (value != nullptr && level < 0) return false;
    if (level >= 0) settled.push_back({p, static_cast<std::uint16_t>(level), true});
  }
  return compiled_->solver.solve(settled).has_value();
}

Result<Configuration> CompiledCampaign::complete_baseline() {
  auto whole = complete(campaign_.baseline, "the baseline");
  if (whole) campaign_.baseline = *whole;
  return whole;
}

}  // namespace greynic::testgen
