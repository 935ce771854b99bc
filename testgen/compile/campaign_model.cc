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
#include "greynic/language/mask_group.h"
#include "greynic/testgen/rdma_rules.h"
#include "greynic/testgen/topology.h"

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

class ModelMaker {
 public:
  ModelMaker(const Campaign& campaign, const DeviceLimits* device,
             const std::shared_ptr<const Topology>& topology)
      : campaign_(campaign), device_(device), topology_(topology) {
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
    if (topology_ == nullptr) return {};
    const std::size_t first = out_.model.parameters.size();
    if (auto added = add_topology(topology_, out_.model, standard_value); !added) return added;
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
  const std::shared_ptr<const Topology>& topology_;
  CampaignModel out_;
};

}  // namespace

std::string topology_path(const Campaign& campaign) {
  namespace fs = std::filesystem;
  const fs::path written = campaign.topology;
  if (written.empty() || written.is_absolute()) return written.string();
  std::error_code ignored;
  if (fs::exists(written, ignored)) return fs::absolute(written).lexically_normal().string();
  for (fs::path folder = fs::absolute(campaign.source).parent_path();;
       folder = folder.parent_path()) {
    if (fs::exists(folder / written, ignored))
      return (folder / written).lexically_normal().string();
    if (folder == folder.parent_path()) return files::shipped_file("topologies", written.string());
  }
}

Result<std::shared_ptr<const Topology>> topology_of(const Campaign& campaign) {
  if (campaign.topology.empty()) return nullptr;
  auto topology = read_topology(topology_path(campaign));
  if (!topology) return topology.error().while_doing(campaign.source + ": at /topology");
  return std::make_shared<const Topology>(std::move(*topology));
}

Result<CampaignModel> model_of(const Campaign& campaign, const DeviceLimits* device,
                               const std::shared_ptr<const Topology>& topology) {
  return ModelMaker(campaign, device, topology).make();
}

int level_of(const CampaignModel& model, std::uint32_t parameter, const FactorValue& value) {
  const auto& values = model.values[parameter];
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

Configuration to_configuration(const CampaignModel& model, const std::vector<int>& levels) {
  Configuration out;
  for (std::size_t p = 0; p < levels.size(); ++p) {
    if (levels[p] < 0) continue;
    out.set(model.model.parameters[p].name, model.values[p][static_cast<std::size_t>(levels[p])]);
  }
  return out;
}

}  // namespace greynic::testgen
