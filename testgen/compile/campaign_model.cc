#include "greynic/testgen/campaign_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compile/decision_diagram.h"
#include "compile/normal_form.h"
#include "greynic/files/shipped.h"
#include "greynic/language/constraint_language.h"
#include "greynic/language/explain_infeasible.h"
#include "greynic/language/mask_group.h"
#include "greynic/testgen/model_cover.h"
#include "greynic/testgen/rdma_rules.h"
#include "greynic/testgen/topology.h"
#include "validity/space_solver.h"

namespace greynic::testgen {

namespace {

std::optional<FactorValue> standard_value(std::string_view name) {
  const FactorInfo* info = find_factor(name);
  if (info == nullptr) return std::nullopt;
  return info->standard;
}

/// Why the device cannot do a level; empty: it can.
std::string refusal(const DeviceLimits& device, const Factor& factor, const FactorValue& level) {
  if (const auto* number = std::get_if<double>(&level)) {
    const auto limit = device.largest.find(factor.name);
    if (limit == device.largest.end() || *number <= limit->second) return {};
    return fmt::format("at most {}", to_string(FactorValue(limit->second)));
  }
  const auto offered = device.categories.find(factor.name);
  if (offered == device.categories.end()) return {};
  const std::string text = to_string(level);
  if (std::find(offered->second.begin(), offered->second.end(), text) != offered->second.end()) {
    return {};
  }
  return fmt::format("only {}", fmt::join(offered->second, ", "));
}

/// The level of a parameter with this value; -1: there is none.
int level_of(const CampaignModel& model, std::uint32_t parameter, const FactorValue& value) {
  const auto& values = model.values[parameter];
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

class ModelMaker {
 public:
  ModelMaker(const Campaign& campaign, const DeviceLimits* device)
      : campaign_(campaign), device_(device) {
    out_.model.source = campaign.source.empty() ? campaign.name : campaign.source;
  }

  Result<CampaignModel> make() {
    for (const Factor& factor : campaign_.factors) {
      if (auto added = add_factor(factor); !added) return pass_on(added);
    }
    for (std::size_t f = 0; f < campaign_.factors.size(); ++f) {
      const Factor& factor = campaign_.factors[f];
      if (factor.only_if.empty()) continue;
      const std::string where = fmt::format("/factors/{}/only_if", factor.name);
      auto condition =
          language::parse_constraint(factor.only_if, out_.model, where, standard_value);
      if (!condition) return pass_on(condition);
      const std::vector<std::uint32_t> read = parameters_of(*condition);
      if (std::find(read.begin(), read.end(), f) != read.end()) {
        return fail(ErrorCode::kBadInput, fmt::format("{}: at {}: a factor cannot depend on itself",
                                                      out_.model.source, where));
      }
      out_.model.parameters[f].only_if = std::move(*condition);
    }
    if (auto added = add_constraints(); !added) return pass_on(added);
    add_forbidden();
    for (const MaskGroup& group : campaign_.masks) add_header_clauses(group, out_.model);
    if (campaign_.mask_order) add_order_clauses(campaign_.masks, out_.model);
    if (auto added = add_rdma_rules(); !added) return pass_on(added);
    if (auto added = add_network(); !added) return pass_on(added);
    add_seeds();
    if (auto added = add_groups(); !added) return pass_on(added);
    return std::move(out_);
  }

 private:
  Result<void> add_factor(const Factor& factor) {
    language::ModelParameter parameter;
    parameter.name = factor.name;
    std::vector<FactorValue> values;
    for (std::size_t i = 0; i < factor.levels.size(); ++i) {
      const FactorValue& level = factor.levels[i];
      if (device_ != nullptr) {
        if (const std::string why = refusal(*device_, factor, level); !why.empty()) {
          out_.notes.push_back(fmt::format("left out {}={}: {} offers {}", factor.name,
                                           to_string(level), device_->target, why));
          continue;
        }
      }
      values.push_back(level);
      parameter.levels.push_back(to_string(level));
      if (const auto* number = std::get_if<double>(&level)) parameter.numbers.push_back(*number);
      if (!factor.weights.empty()) parameter.weights.push_back(factor.weights[i]);
      if (!factor.costs.empty()) parameter.costs.push_back(factor.costs[i]);
    }
    if (values.empty()) {
      return fail(ErrorCode::kInfeasible,
                  fmt::format("{}: at /factors/{}: {} offers none of its levels", out_.model.source,
                              factor.name, device_ == nullptr ? "the campaign" : device_->target));
    }
    if (values.size() > language::kMostLevels) {
      return fail(ErrorCode::kTooBig,
                  fmt::format("{}: at /factors/{}: {} levels; at most {}", out_.model.source,
                              factor.name, values.size(), language::kMostLevels));
    }
    out_.model.parameters.push_back(std::move(parameter));
    out_.values.push_back(std::move(values));
    return {};
  }

  Result<void> add_constraints() {
    for (std::size_t i = 0; i < campaign_.constraints.size(); ++i) {
      const std::string where = fmt::format("/constraints/{}", i);
      auto expression =
          language::parse_constraint(campaign_.constraints[i], out_.model, where, standard_value);
      if (!expression) return pass_on(expression);
      out_.model.constraints.push_back({std::move(*expression), campaign_.constraints[i], where});
    }
    return {};
  }

  void add_forbidden() {
    for (std::size_t i = 0; i < campaign_.forbidden.size(); ++i) {
      Clause clause;
      bool possible = true;
      for (const auto& [name, value] : campaign_.forbidden[i].levels()) {
        const auto parameter = out_.model.find(name);
        const int level = parameter ? level_of(out_, *parameter, value) : -1;
        possible = possible && level >= 0;
        if (level >= 0) clause.push_back({*parameter, static_cast<std::uint16_t>(level), false});
      }
      // A combination with a level that is not there (left out, or overridden) cannot occur.
      if (!possible) continue;
      out_.model.clauses.push_back(std::move(clause));
      out_.model.clause_where.push_back(
          fmt::format("forbidden {} (/forbidden/{})", campaign_.forbidden[i].name(), i));
    }
  }

  /// What a rule's factors are that the campaign does not vary: "; mr_bytes is 16777216".
  std::string held_values(std::string_view constraint) const {
    std::string text;
    std::set<std::string> seen;
    for (const std::string& name : language::names_in(constraint)) {
      if (out_.model.find(name)) continue;
      const auto value = standard_value(name);
      if (!value || !seen.insert(name).second) continue;
      text += fmt::format("; {} is {}", name, to_string(*value));
    }
    return text;
  }

  Result<void> add_rdma_rules() {
    for (const RdmaRule& rule : rdma_rules()) {
      auto expression =
          language::parse_constraint(rule.constraint, out_.model, "RDMA's rules", standard_value);
      // A campaign may use a name of the table for something else on an exec: target, with other
      // types; the rule then does not apply.
      if (!expression || parameters_of(*expression).empty()) continue;
      const language::Expr normal = normal_form(out_.model, *expression, Absent::kCountsAsTrue);
      const auto diagram = build_diagram(out_.model, normal, kMostRuleNodes);
      if (diagram && diagram->root == Diagram::kTrue) continue;  // these levels cannot break it
      std::string why = std::string(rule.why) + held_values(rule.constraint);
      out_.notes.push_back(fmt::format("rule of RDMA: {} ({})", rule.constraint, why));
      out_.model.constraints.push_back(
          {std::move(*expression), std::string(rule.constraint), std::move(why)});
    }
    return {};
  }

  /// The topology's factors are Booleans where their levels are, else categories.
  Result<void> add_network() {
    if (campaign_.topology.empty()) return {};
    auto topology = read_topology(topology_path(campaign_));
    if (!topology) return topology.error().while_doing(campaign_.source + ": at /topology");
    const std::size_t first = out_.model.parameters.size();
    auto added =
        add_topology(std::make_shared<Topology>(std::move(*topology)), out_.model, standard_value);
    if (!added) return added;
    for (std::size_t p = first; p < out_.model.parameters.size(); ++p) {
      std::vector<FactorValue> values;
      for (const std::string& level : out_.model.parameters[p].levels) {
        const bool is_bool = level == "false" || level == "true";
        values.push_back(is_bool ? FactorValue(level == "true") : FactorValue(level));
      }
      out_.values.push_back(std::move(values));
    }
    return {};
  }

  void add_seeds() {
    for (std::size_t i = 0; i < campaign_.seeds.size(); ++i) {
      std::vector<int> seed(out_.model.parameters.size(), -1);
      bool possible = true;
      for (const auto& [name, value] : campaign_.seeds[i].levels()) {
        const auto parameter = out_.model.find(name);
        const int level = parameter ? level_of(out_, *parameter, value) : -1;
        possible = possible && level >= 0;
        if (level >= 0) seed[*parameter] = level;
      }
      if (possible) {
        out_.model.seeds.push_back(std::move(seed));
      } else {
        out_.notes.push_back(fmt::format("left out seed {}: it has a level that is not there", i));
      }
    }
  }

  Result<void> add_groups() {
    out_.model.strength = campaign_.design.strength;
    for (const StrengthGroup& group : campaign_.design.groups) {
      SubModel made;
      made.strength = group.strength;
      for (const std::string& name : group.factors) {
        const auto parameter = out_.model.find(name);
        if (!parameter) {
          return fail(ErrorCode::kBadInput,
                      fmt::format("{}: at /design: unknown factor '{}'", out_.model.source, name));
        }
        made.parameters.push_back(*parameter);
      }
      std::sort(made.parameters.begin(), made.parameters.end());
      out_.model.groups.push_back(std::move(made));
    }
    return {};
  }

  static constexpr std::size_t kMostRuleNodes = 2'000;

  const Campaign& campaign_;
  const DeviceLimits* device_;
  CampaignModel out_;
};

}  // namespace

std::string topology_path(const Campaign& campaign) {
  namespace fs = std::filesystem;
  const fs::path written = campaign.topology;
  if (written.empty() || written.is_absolute()) return written.string();
  if (fs::exists(written)) return fs::absolute(written).lexically_normal().string();
  for (fs::path folder = fs::absolute(campaign.source).parent_path();;
       folder = folder.parent_path()) {
    if (fs::exists(folder / written)) return (folder / written).lexically_normal().string();
    if (folder == folder.parent_path()) return files::shipped_file("topologies", written.string());
  }
}

Result<CampaignModel> model_of(const Campaign& campaign, const DeviceLimits* device) {
  return ModelMaker(campaign, device).make();
}

Configuration to_configuration(const CampaignModel& model, const std::vector<int>& levels) {
  Configuration out;
  for (std::size_t p = 0; p < levels.size(); ++p) {
    if (levels[p] < 0) continue;
    out.set(model.model.parameters[p].name, model.values[p][static_cast<std::size_t>(levels[p])]);
  }
  return out;
}

Result<Configuration> complete(const Campaign& campaign, const Configuration& part,
                               const std::string& what) {
  Campaign widened = campaign;
  widened.seeds.clear();
  widened.design.groups.clear();
  Configuration outside;
  for (const auto& [name, value] : part.levels()) {
    const auto factor = std::find_if(widened.factors.begin(), widened.factors.end(),
                                     [&name = name](const Factor& f) { return f.name == name; });
    if (factor == widened.factors.end()) {
      outside.set(name, value);
    } else if (std::find(factor->levels.begin(), factor->levels.end(), value) ==
               factor->levels.end()) {
      factor->levels.push_back(value);
      factor->weights.clear();
      factor->costs.clear();
    }
  }
  auto model = model_of(widened, nullptr);
  if (!model) return pass_on(model);
  auto space = compile(model->model);
  if (!space) return pass_on(space);
  SpaceSolver solver(*space);
  std::vector<int> near(model->values.size(), 0);
  std::vector<int> fixed(model->values.size(), -1);
  for (std::uint32_t p = 0; p < near.size(); ++p) {
    const language::ModelParameter& parameter = model->model.parameters[p];
    if (const FactorValue* value = campaign.baseline.find(parameter.name)) {
      near[p] = std::max(0, level_of(*model, p, *value));
    }
    const FactorValue* value = part.find(parameter.name);
    if (value == nullptr) continue;
    fixed[p] = level_of(*model, p, *value);
    Clause clause = {{p, static_cast<std::uint16_t>(fixed[p]), true}};
    if (parameter.only_if) {
      clause.push_back({p, static_cast<std::uint16_t>(parameter.levels.size()), true});
    }
    solver.add(clause);
  }
  auto row = solver.solve();
  if (!row) {
    return fail(ErrorCode::kInfeasible,
                fmt::format("{}: {} ({}) breaks the constraints: {}", model->model.source, what,
                            part.name(), describe_conflict(model->model, fixed)));
  }
  // The baseline's levels join one by one, each unless it contradicts what stands already.
  std::vector<Literal> kept;
  for (std::uint32_t p = 0; p < near.size(); ++p) {
    if (fixed[p] >= 0) continue;
    kept.push_back({p, static_cast<std::uint16_t>(near[p]), true});
    if (auto closer = solver.solve(kept)) {
      row = std::move(closer);
    } else {
      kept.pop_back();
    }
  }
  Configuration out = to_configuration(*model, decode(model->model, *row));
  for (const auto& [name, value] : outside.levels()) out.set(name, value);
  return out;
}

}  // namespace greynic::testgen
