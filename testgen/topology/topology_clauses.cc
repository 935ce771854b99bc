#include <fmt/core.h>

#include <algorithm>

#include "compile/normal_form.h"
#include "greynic/testgen/model_cover.h"
#include "topology/topology_choices.h"
#include "topology/topology_graph.h"

namespace greynic::testgen {

using language::CoverModel;

namespace {

/// Ways through loops that are followed before a topology is refused.
constexpr std::size_t kMostLoopSteps = 20'000'000;

/// Literals that hold together, kept so that a contradiction shows at once.
class Guards {
 public:
  /// False: the literal contradicts those before.
  bool add(const std::optional<Literal>& literal) {
    literals_.push_back(literal.value_or(Literal{}));
    always_.push_back(!literal);
    if (!literal) return true;
    for (std::size_t i = 0; i + 1 < literals_.size(); ++i) {
      const Literal& other = literals_[i];
      if (always_[i] || other.parameter != literal->parameter) continue;
      const bool same_level = other.level == literal->level;
      if (other.positive && literal->positive && !same_level) return false;
      if (other.positive != literal->positive && same_level) return false;
    }
    return true;
  }
  void remove() {
    literals_.pop_back();
    always_.pop_back();
  }
  [[nodiscard]] std::size_t size() const { return literals_.size(); }
  /// "Not all of them", as the beginning of a clause.
  [[nodiscard]] Clause refuted() const {
    Clause clause;
    for (std::size_t i = 0; i < literals_.size(); ++i) {
      if (always_[i]) continue;
      Literal opposite = literals_[i];
      opposite.positive = !opposite.positive;
      if (std::find(clause.begin(), clause.end(), opposite) == clause.end()) {
        clause.push_back(opposite);
      }
    }
    return clause;
  }

 private:
  std::vector<Literal> literals_;
  std::vector<bool> always_;
};

class ClauseMaker {
 public:
  ClauseMaker(const TopologyChoices& choices, const CoverModel& model, Space& space)
      : choices_(choices), model_(model), space_(space), compiler_(model, space, options_) {}

  Result<void> make() {
    auto built = build_topology_graph(choices_, model_, compiler_);
    if (!built) return pass_on(built);
    graph_ = std::move(*built);
    find_header_checks();
    simplify(graph_, watched_);
    for (const std::uint32_t start : graph_.starts) {
      if (start == TopologyGraph::kBad) return infeasible();
    }
    mark_joints();
    forbid_bad_ends();
    if (exact_) support_joints();
    add_header_checks();
    return forbid_loops();
  }

 private:
  /// A chosen match and where packets with and without its headers are looked up.
  struct HeaderCheck {
    std::optional<Literal> chosen;
    std::vector<std::uint32_t> have;
    std::vector<std::uint32_t> lack;
  };

  Result<void> infeasible() {
    // An empty clause: nothing is valid. The walk of any row says which flow cannot arrive.
    space_.clauses.emplace_back();
    return {};
  }

  void find_header_checks() {
    watched_.assign(graph_.edges.size(), false);
    for (std::size_t s = 0; s < choices_.tables.size(); ++s) {
      for (std::size_t t = 0; t < choices_.tables[s].size(); ++t) {
        const auto lookups = graph_.lookups.find({s, t});
        if (lookups == graph_.lookups.end()) continue;
        for (const auto& group : choices_.tables[s][t].groups) {
          for (const RuleChoice& rule : group) find_checks_of(rule, lookups->second);
        }
      }
    }
    for (const HeaderCheck& check : checks_) {
      for (const std::uint32_t node : check.lack) watched_[node] = true;
      if (check.have.empty()) continue;
      exact_ = true;
      for (const std::uint32_t node : check.have) watched_[node] = true;
    }
  }

  void find_checks_of(const RuleChoice& rule,
                      const std::vector<std::pair<std::uint32_t, Headers>>& lookups) {
    if (!rule.is_chosen()) return;
    for (std::size_t m = 0; m < rule.rule->matches.size(); ++m) {
      HeaderCheck check;
      check.chosen = rule.match ? Literal{*rule.match, static_cast<std::uint16_t>(m), true}
                                : Literal{*rule.installed, 1, true};
      for (const auto& [node, headers] : lookups) {
        (has_headers(rule.rule->matches[m], headers) ? check.have : check.lack).push_back(node);
      }
      if (!check.lack.empty()) checks_.push_back(std::move(check));
    }
  }

  bool is_gone(std::uint32_t node) const { return graph_.edges[node].empty(); }

  /// Nodes that several ways lead to, and watched ones, get a helper "a packet comes here"; starts
  /// are always reached. All other nodes are told by the way from the last joint.
  void mark_joints() {
    std::vector<std::uint32_t> ways(graph_.edges.size(), 0);
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      for (const GraphEdge& edge : graph_.edges[n]) ++ways[edge.to];
    }
    reached_.assign(graph_.edges.size(), std::nullopt);
    is_start_.assign(graph_.edges.size(), false);
    for (const std::uint32_t start : graph_.starts) is_start_[start] = true;
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      if (is_start_[n] || is_gone(n)) continue;
      if (ways[n] == 0) continue;  // only gone nodes led here
      if (ways[n] > 1 || watched_[n] || exact_) {
        Parameter helper;
        helper.level_count = 2;
        helper.covered = false;
        space_.parameters.push_back(helper);
        reached_[n] = Literal{static_cast<std::uint32_t>(space_.parameters.size() - 1), 1, true};
      }
    }
  }

  bool is_joint(std::uint32_t node) const { return is_start_[node] || reached_[node].has_value(); }

  void forbid_bad_ends() {
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      if (is_gone(n) || !is_joint(n)) continue;
      Guards guards;
      guards.add(reached_[n]);
      follow(n, guards);
    }
  }

  /// All ways from a joint to the next joints and ends.
  void follow(std::uint32_t node, Guards& guards) {
    for (const GraphEdge& edge : graph_.edges[node]) {
      if (guards.add(edge.guard)) {
        if (edge.to == TopologyGraph::kBad) {
          space_.clauses.push_back(guards.refuted());
        } else if (edge.to != TopologyGraph::kGood) {
          if (!is_joint(edge.to)) {
            follow(edge.to, guards);
          } else if (!is_start_[edge.to]) {
            Clause clause = guards.refuted();
            clause.push_back(*reached_[edge.to]);
            space_.clauses.push_back(std::move(clause));
          }
        }
      }
      guards.remove();
    }
  }

  /// The other direction: a node is reached only if some edge into it is taken. Needed where a
  /// check asks that a packet does come by; every node has a helper then.
  void support_joints() {
    std::vector<std::vector<Literal>> into(graph_.edges.size());
    std::vector<bool> always(graph_.edges.size(), false);
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      if (is_gone(n) || !is_joint(n)) continue;
      for (const GraphEdge& edge : graph_.edges[n]) {
        if (edge.to <= TopologyGraph::kBad || is_start_[edge.to]) continue;
        if (!reached_[n] && !edge.guard) {
          always[edge.to] = true;
        } else if (!reached_[n] || !edge.guard) {
          into[edge.to].push_back(reached_[n] ? *reached_[n] : *edge.guard);
        } else {
          // taken -> reached and guard; the other direction is not needed.
          Parameter helper;
          helper.level_count = 2;
          helper.covered = false;
          space_.parameters.push_back(helper);
          const auto taken = static_cast<std::uint32_t>(space_.parameters.size() - 1);
          space_.clauses.push_back({{taken, 1, false}, *reached_[n]});
          space_.clauses.push_back({{taken, 1, false}, *edge.guard});
          into[edge.to].push_back({taken, 1, true});
        }
      }
    }
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      if (!reached_[n] || always[n]) continue;
      Clause clause = {{reached_[n]->parameter, 1, false}};
      clause.insert(clause.end(), into[n].begin(), into[n].end());
      space_.clauses.push_back(std::move(clause));
    }
  }

  void add_header_checks() {
    for (const HeaderCheck& check : checks_) {
      Clause common = {{check.chosen->parameter, check.chosen->level, false}};
      bool always_had = false;
      for (const std::uint32_t node : check.have) {
        if (is_gone(node)) continue;
        if (is_start_[node]) {
          always_had = true;
        } else if (reached_[node]) {
          common.push_back(*reached_[node]);
        }
      }
      if (always_had) continue;
      for (const std::uint32_t node : check.lack) {
        if (is_gone(node)) continue;
        Clause clause = common;
        if (reached_[node]) {
          clause.push_back({reached_[node]->parameter, 1, false});
        } else if (!is_start_[node]) {
          continue;  // never reached
        }
        space_.clauses.push_back(std::move(clause));
      }
    }
  }

  /// Every loop that could be gone round is forbidden by one clause.
  Result<void> forbid_loops() {
    find_components();
    on_way_.assign(graph_.edges.size(), false);
    for (std::uint32_t n = 2; n < graph_.edges.size(); ++n) {
      if (is_gone(n)) continue;
      Guards guards;
      first_ = n;
      if (!go_round(n, guards)) {
        return fail(ErrorCode::kTooBig,
                    fmt::format("{}: packets could loop in too many ways (more than {} steps were "
                                "followed); leave out alternatives of rules",
                                choices_.topology->source, kMostLoopSteps));
      }
    }
    return {};
  }

  bool go_round(std::uint32_t node, Guards& guards) {
    if (++loop_steps_ > kMostLoopSteps) return false;
    on_way_[node] = true;
    way_.push_back(node);
    bool go_on = true;
    for (const GraphEdge& edge : graph_.edges[node]) {
      if (edge.to < first_ || component_[edge.to] != component_[first_] || edge.to <= 1) continue;
      if (guards.add(edge.guard)) {
        if (edge.to == first_) {
          forbid_loop(guards);
        } else if (!on_way_[edge.to]) {
          go_on = go_on && go_round(edge.to, guards);
        }
      }
      guards.remove();
    }
    way_.pop_back();
    on_way_[node] = false;
    return go_on;
  }

  void forbid_loop(const Guards& guards) {
    Clause clause = guards.refuted();
    // A packet is in the loop when it comes to any node of it; one that is told is enough.
    const auto start = std::find_if(way_.begin(), way_.end(), [&](auto n) { return is_start_[n]; });
    if (start == way_.end()) {
      const auto told = std::find_if(way_.begin(), way_.end(), [&](auto n) { return is_joint(n); });
      if (told == way_.end()) return;  // no way leads into it
      clause.push_back({reached_[*told]->parameter, 1, false});
    }
    space_.clauses.push_back(std::move(clause));
  }

  /// Strongly connected components, by Tarjan's algorithm without recursion.
  void find_components() {
    const std::size_t count = graph_.edges.size();
    component_.assign(count, 0);
    std::vector<std::uint32_t> index(count, 0);
    std::vector<std::uint32_t> low(count, 0);
    std::vector<bool> on_stack(count, false);
    std::vector<std::uint32_t> stack;
    std::vector<std::pair<std::uint32_t, std::size_t>> calls;
    std::uint32_t next_index = 1;
    std::uint32_t next_component = 1;
    for (std::uint32_t root = 2; root < count; ++root) {
      if (index[root] != 0) continue;
      calls.emplace_back(root, 0);
      while (!calls.empty()) {
        const std::uint32_t n = calls.back().first;
        std::size_t& edge = calls.back().second;
        if (edge == 0 && index[n] == 0) {
          index[n] = low[n] = next_index++;
          stack.push_back(n);
          on_stack[n] = true;
        }
        if (edge < graph_.edges[n].size()) {
          const std::uint32_t to = graph_.edges[n][edge++].to;
          if (to <= TopologyGraph::kBad) continue;
          if (index[to] == 0) {
            calls.emplace_back(to, 0);
          } else if (on_stack[to]) {
            low[n] = std::min(low[n], index[to]);
          }
          continue;
        }
        if (low[n] == index[n]) {
          std::uint32_t member = 0;
          do {
            member = stack.back();
            stack.pop_back();
            on_stack[member] = false;
            component_[member] = next_component;
          } while (member != n);
          ++next_component;
        }
        calls.pop_back();
        if (!calls.empty()) {
          low[calls.back().first] = std::min(low[calls.back().first], low[n]);
        }
      }
    }
  }

  const TopologyChoices& choices_;
  const CoverModel& model_;
  Space& space_;
  CompileOptions options_;
  ConstraintCompiler compiler_;
  TopologyGraph graph_;
  std::vector<bool> watched_;
  std::vector<HeaderCheck> checks_;
  bool exact_ = false;
  std::vector<std::optional<Literal>> reached_;
  std::vector<bool> is_start_;
  std::vector<std::uint32_t> component_;
  std::vector<bool> on_way_;
  std::vector<std::uint32_t> way_;
  std::uint32_t first_ = 0;
  std::size_t loop_steps_ = 0;
};

}  // namespace

Result<void> add_topology_clauses(const TopologyChoices& choices, const CoverModel& model,
                                  Space& space) {
  return ClauseMaker(choices, model, space).make();
}

}  // namespace greynic::testgen
