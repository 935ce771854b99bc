#include "topology/topology_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "compile/clause_extension.h"
#include "greynic/testgen/model_cover.h"
#include "topology/packet_walk.h"

namespace greynic::testgen {

using language::Breach;
using language::ConstantLookup;
using language::CoverModel;
using language::Expr;

namespace {

class FactorMaker {
 public:
  FactorMaker(const Topology& topology, CoverModel& model, const ConstantLookup& constants)
      : topology_(topology),
        model_(model),
        constants_(constants),
        campaign_factors_(model.parameters.size()) {}

  Result<std::vector<std::vector<TableChoice>>> make() {
    std::vector<std::vector<TableChoice>> out;
    for (std::size_t s = 0; s < topology_.switches.size(); ++s) {
      auto& tables = out.emplace_back();
      for (std::size_t t = 0; t < topology_.switches[s].tables.size(); ++t) {
        auto table = table_choice(s, t);
        if (!table) return pass_on(table);
        tables.push_back(std::move(*table));
      }
    }
    return out;
  }

 private:
  Result<TableChoice> table_choice(std::size_t s, std::size_t t) {
    const TopologySwitch& at = topology_.switches[s];
    const TopologyTable& table = at.tables[t];
    TableChoice choice;
    for (const TopologyGroup& group : table.groups) {
      auto& rules = choice.groups.emplace_back();
      for (const TopologyRule& rule : group.rules) {
        auto made = rule_choice(at, rule);
        if (!made) return pass_on(made);
        made->at = s;
        made->table = t;
        rules.push_back(std::move(*made));
      }
    }
    std::vector<std::size_t> order(table.groups.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!table.any_order || order.size() < 2) {
      choice.orders = {order};
      return choice;
    }
    std::vector<std::string> levels;
    do {
      choice.orders.push_back(order);
      std::string text;
      for (const std::size_t g : order) {
        text += (text.empty() ? "" : ">") + table.groups[g].name;
      }
      levels.push_back(std::move(text));
    } while (std::next_permutation(order.begin(), order.end()));
    auto added =
        add(fmt::format("{}.t{}.order", at.name, table.id), std::move(levels), std::nullopt);
    if (!added) return pass_on(added);
    choice.order = *added;
    return choice;
  }

  Result<RuleChoice> rule_choice(const TopologySwitch& at, const TopologyRule& rule) {
    RuleChoice choice;
    choice.rule = &rule;
    const std::string name = fmt::format("{}.{}", at.name, rule.name);
    if (!rule.when.empty()) {
      CoverModel campaign;  // a `when` reads the campaign's factors, not the topology's own
      campaign.source = topology_.source;
      campaign.parameters.assign(
          model_.parameters.begin(),
          model_.parameters.begin() + static_cast<std::ptrdiff_t>(campaign_factors_));
      auto when =
          language::parse_constraint(rule.when, campaign, fmt::format("rule {}", name), constants_);
      if (!when) return pass_on(when);
      choice.when = std::move(*when);
    }
    if (rule.optional) {
      auto added = add(name + ".installed", {"false", "true"}, choice.when);
      if (!added) return pass_on(added);
      choice.installed = *added;
    }
    std::optional<Expr> there = choice.when;
    if (choice.installed) there = Expr::level_in(*choice.installed, {1});
    if (rule.matches.size() > 1) {
      std::vector<std::string> levels;
      for (const Match& match : rule.matches) levels.push_back(to_string(match));
      auto added = add(name + ".match", std::move(levels), there);
      if (!added) return pass_on(added);
      choice.match = *added;
    }
    if (rule.actions.size() > 1) {
      std::vector<std::string> levels;
      for (const std::vector<Action>& actions : rule.actions) {
        std::string text;
        for (const Action& action : actions) text += (text.empty() ? "" : ",") + to_string(action);
        levels.push_back(text.empty() ? "drop" : text);
      }
      auto added = add(name + ".action", std::move(levels), there);
      if (!added) return pass_on(added);
      choice.action = *added;
    }
    return choice;
  }

  Result<std::uint32_t> add(std::string name, std::vector<std::string> levels,
                            std::optional<Expr> only_if) {
    if (model_.find(name)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: the factor '{}' is there twice", topology_.source, name));
    }
    if (std::set<std::string>(levels.begin(), levels.end()).size() != levels.size()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: two alternatives of '{}' are the same", topology_.source, name));
    }
    language::ModelParameter parameter;
    parameter.name = std::move(name);
    parameter.levels = std::move(levels);
    parameter.only_if = std::move(only_if);
    model_.parameters.push_back(std::move(parameter));
    return static_cast<std::uint32_t>(model_.parameters.size() - 1);
  }

  const Topology& topology_;
  CoverModel& model_;
  const ConstantLookup& constants_;
  std::size_t campaign_factors_;
};

/// The topology as one row of the model sets it.
class PathWalker {
 public:
  PathWalker(const TopologyChoices& choices, const CoverModel& model, const std::vector<int>& row)
      : choices_(choices), model_(model), row_(row) {}

  Breach run() {
    std::set<std::uint32_t> all;
    for (const TopologyFlow& flow : choices_.topology->flows) {
      read_.clear();
      if (std::string why = walk(flow); !why.empty()) return breach(std::move(why));
      all.merge(read_);
    }
    read_ = std::move(all);
    return breach(misplaced_match());
  }

 private:
  Breach breach(std::string what) const { return {std::move(what), {read_.begin(), read_.end()}}; }

  int level(std::uint32_t parameter) {
    read_.insert(parameter);
    return row_[parameter];
  }

  bool is_there(const RuleChoice& rule) {
    if (rule.when) {
      const auto level_of = [&](std::uint32_t p) { return level(p); };
      const auto number = [&](std::uint32_t p, int at) { return number_of(model_, p, at); };
      for (const std::uint32_t p : parameters_of(*rule.when)) read_.insert(p);
      if (evaluate(*rule.when, level_of, number) != language::Truth::kTrue) return false;
    }
    return !rule.installed || level(*rule.installed) == 1;
  }

  const Match& match_of(const RuleChoice& rule) {
    return rule.rule->matches[rule.match ? static_cast<std::size_t>(level(*rule.match)) : 0];
  }

  const std::vector<Action>& actions_of(const RuleChoice& rule) {
    return rule.rule->actions[rule.action ? static_cast<std::size_t>(level(*rule.action)) : 0];
  }

  const RuleChoice* winner(const WalkState& state) {
    const TableChoice& table = choices_.tables[state.at][state.table];
    const auto order = table.order ? static_cast<std::size_t>(level(*table.order)) : 0;
    for (const std::size_t g : table.orders[order]) {
      for (const RuleChoice& rule : table.groups[g]) {
        if (!could_match(rule, state.headers)) continue;
        if (is_there(rule) && matches(match_of(rule), state.headers)) return &rule;
      }
    }
    return nullptr;
  }

  /// A rule none of whose matches fits is passed by, whatever is chosen of it.
  static bool could_match(const RuleChoice& rule, const Headers& headers) {
    return std::ranges::any_of(rule.rule->matches,
                               [&](const Match& match) { return matches(match, headers); });
  }

  /// "leaf.t0": a table as topology files name it.
  std::string table_name(std::size_t at, std::size_t table) const {
    const TopologySwitch& there = choices_.topology->switches[at];
    return fmt::format("{}.t{}", there.name, there.tables[table].id);
  }

  std::string rule_name(const RuleChoice& rule) const {
    return fmt::format("rule {} of {}", rule.rule->name, table_name(rule.at, rule.table));
  }

  std::string walk(const TopologyFlow& flow) {
    const Topology& topology = *choices_.topology;
    const std::string name = fmt::format("{} -> {}", topology.containers[flow.from].name,
                                         topology.containers[flow.to].name);
    std::vector<std::pair<WalkState, std::string>> way;  // and the rule that decided there
    WalkState state = start_of(topology, flow);
    std::string lost;
    while (true) {
      const auto before =
          std::ranges::find_if(way, [&](const auto& step) { return step.first == state; });
      if (before != way.end()) {
        std::vector<std::string> round;
        for (auto at = before; at != way.end(); ++at) round.push_back(at->second);
        return fmt::format("{}: the packet loops through {}", name, fmt::join(round, ", "));
      }
      visits_.insert(state);
      const RuleChoice* rule = winner(state);
      if (rule == nullptr) {
        lost = fmt::format("matches no rule in {}", table_name(state.at, state.table));
        if (!way.empty()) lost += fmt::format(", where {} sent it", way.back().second);
        break;
      }
      way.emplace_back(state, rule_name(*rule));
      WalkStep step = apply(topology, state, actions_of(*rule));
      if (step.next) {
        state = std::move(*step.next);
        continue;
      }
      if (step.container) {
        if (flow.delivered && *step.container == flow.to) return {};
        return fmt::format("{}: the packet reaches {} by {}", name,
                           topology.containers[*step.container].name, way.back().second);
      }
      lost = fmt::format("{} by {}", step.lost, way.back().second);
      break;
    }
    return flow.delivered ? fmt::format("{}: the packet {}", name, lost) : std::string();
  }

  /// A chosen rule that matches a header which no packet at its table has.
  std::string misplaced_match() {
    for (std::size_t s = 0; s < choices_.tables.size(); ++s) {
      for (std::size_t t = 0; t < choices_.tables[s].size(); ++t) {
        for (const auto& group : choices_.tables[s][t].groups) {
          for (const RuleChoice& rule : group) {
            if (is_misplaced(rule)) {
              return fmt::format("{} matches a header that no packet has there", rule_name(rule));
            }
          }
        }
      }
    }
    return {};
  }

  bool is_misplaced(const RuleChoice& rule) {
    if (!rule.is_chosen()) return false;
    const std::set<std::uint32_t> before = read_;
    bool visited = false;
    bool found = false;
    const bool there = is_there(rule);
    for (const WalkState& state : visits_) {
      if (!there || state.at != rule.at || state.table != rule.table) continue;
      visited = true;
      found = found || has_headers(match_of(rule), state.headers);
    }
    if (visited && !found) return true;
    read_ = before;  // what a rule without fault says is no cause
    return false;
  }

  const TopologyChoices& choices_;
  const CoverModel& model_;
  const std::vector<int>& row_;
  std::set<WalkState> visits_;
  std::set<std::uint32_t> read_;  ///< parameters whose levels decided what was seen
};

class TopologyExtension : public ClauseExtension {
 public:
  explicit TopologyExtension(TopologyChoices choices) : choices_(std::move(choices)) {}
  Result<void> compile(const CoverModel& model, Space& space) const override {
    return add_topology_clauses(choices_, model, space);
  }
  Breach broken_by(const CoverModel& model, const std::vector<int>& row) const override {
    return walk_topology(choices_, model, row);
  }

 private:
  TopologyChoices choices_;
};

}  // namespace

Result<TopologyChoices> add_topology_factors(std::shared_ptr<const Topology> topology,
                                             CoverModel& model, const ConstantLookup& constants) {
  auto tables = FactorMaker(*topology, model, constants).make();
  if (!tables) return pass_on(tables);
  return TopologyChoices{std::move(topology), std::move(*tables)};
}

Breach walk_topology(const TopologyChoices& choices, const CoverModel& model,
                     const std::vector<int>& row) {
  return PathWalker(choices, model, row).run();
}

Result<void> add_topology(std::shared_ptr<const Topology> topology, CoverModel& model,
                          const ConstantLookup& constants) {
  auto choices = add_topology_factors(std::move(topology), model, constants);
  if (!choices) return pass_on(choices);
  model.extension = std::make_shared<TopologyExtension>(std::move(*choices));
  return {};
}

}  // namespace greynic::testgen
