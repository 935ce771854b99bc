#include "topology/topology_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "compile/normal_form.h"

namespace greynic::testgen {

using language::CoverModel;

namespace {

constexpr std::size_t kMostNodes = 2'000'000;

class GraphBuilder {
 public:
  GraphBuilder(const TopologyChoices& choices, const CoverModel& model,
               ConstraintCompiler& compiler)
      : choices_(choices), topology_(*choices.topology), model_(model), compiler_(compiler) {
    graph_.edges.resize(2);
  }

  Result<TopologyGraph> build() {
    if (auto done = find_conditions(); !done) return pass_on(done);
    for (const TopologyFlow& flow : topology_.flows) {
      graph_.starts.push_back(node_of(flow, start_of(topology_, flow)));
      while (!open_.empty()) {
        const auto [node, state] = std::move(open_.back());
        open_.pop_back();
        look_up(flow, node, state);
        if (graph_.edges.size() > kMostNodes) {
          return fail(ErrorCode::kTooBig,
                      fmt::format("{}: its packets can be in more than {} states; leave out flows, "
                                  "alternatives of rules, or rewrites",
                                  topology_.source, kMostNodes));
        }
      }
    }
    return std::move(graph_);
  }

 private:
  /// When a rule that depends on the campaign is there, as a literal.
  struct Condition {
    std::optional<Literal> literal;
    bool constant = true;
  };

  Result<void> find_conditions() {
    for (const auto& tables : choices_.tables) {
      for (const TableChoice& table : tables) {
        for (const auto& group : table.groups) {
          for (const RuleChoice& rule : group) {
            if (!rule.when || rule.installed || rule.match) continue;
            Condition condition;
            auto literal =
                compiler_.literal_for(normal_form(model_, *rule.when, Absent::kCountsAsFalse),
                                      normal_form(model_, *rule.when, Absent::kCountsAsTrue, true),
                                      condition.constant, topology_.source, rule.rule->when);
            if (!literal) return pass_on(literal);
            condition.literal = *literal;
            conditions_[&rule] = condition;
          }
        }
      }
    }
    return {};
  }

  std::uint32_t new_node() {
    graph_.edges.emplace_back();
    return static_cast<std::uint32_t>(graph_.edges.size() - 1);
  }

  /// Flows that must end at the same place share what their packets share.
  std::uint32_t node_of(const TopologyFlow& flow, WalkState state) {
    const auto key = std::make_tuple(flow.to, flow.delivered, state);
    const auto [place, fresh] = nodes_.try_emplace(key, 0U);
    if (fresh) {
      place->second = new_node();
      graph_.lookups[{state.at, state.table}].emplace_back(place->second, state.headers);
      open_.emplace_back(place->second, std::move(state));
    }
    return place->second;
  }

  void look_up(const TopologyFlow& flow, std::uint32_t node, const WalkState& state) {
    const TableChoice& table = choices_.tables[state.at][state.table];
    for (std::size_t o = 0; o < table.orders.size(); ++o) {
      std::uint32_t here = node;
      if (table.order) {
        here = new_node();
        graph_.edges[node].push_back(
            {Literal{*table.order, static_cast<std::uint16_t>(o), true}, here});
      }
      try_rules(flow, here, state, table, table.orders[o]);
    }
  }

  /// A chain of nodes, one for each rule that may match: it is there and decides, or the next is
  /// tried.
  void try_rules(const TopologyFlow& flow, std::uint32_t here, const WalkState& state,
                 const TableChoice& table, const std::vector<std::size_t>& order) {
    for (const std::size_t g : order) {
      for (const RuleChoice& rule : table.groups[g]) {
        for (std::size_t m = 0; m < rule.rule->matches.size(); ++m) {
          if (!matches(rule.rule->matches[m], state.headers)) continue;
          Condition active;
          if (rule.match) {
            active.literal = Literal{*rule.match, static_cast<std::uint16_t>(m), true};
          } else if (rule.installed) {
            active.literal = Literal{*rule.installed, 1, true};
          } else if (rule.when) {
            active = conditions_.at(&rule);
          }
          if (!active.literal && !active.constant) continue;
          const std::uint32_t acting = new_node();
          act(flow, acting, state, rule);
          if (!active.literal) {
            graph_.edges[here].push_back({std::nullopt, acting});
            return;
          }
          const std::uint32_t next = new_node();
          Literal otherwise = *active.literal;
          otherwise.positive = !otherwise.positive;
          graph_.edges[here].push_back({active.literal, acting});
          graph_.edges[here].push_back({otherwise, next});
          here = next;
        }
      }
    }
    graph_.edges[here].push_back({std::nullopt, end(!flow.delivered)});
  }

  void act(const TopologyFlow& flow, std::uint32_t node, const WalkState& state,
           const RuleChoice& rule) {
    for (std::size_t a = 0; a < rule.rule->actions.size(); ++a) {
      std::optional<Literal> guard;
      if (rule.action) guard = Literal{*rule.action, static_cast<std::uint16_t>(a), true};
      WalkStep step = apply(topology_, state, rule.rule->actions[a]);
      std::uint32_t to = TopologyGraph::kBad;
      if (step.next) {
        to = node_of(flow, std::move(*step.next));
      } else if (step.container) {
        to = end(flow.delivered && *step.container == flow.to);
      } else {
        to = end(!flow.delivered);
      }
      graph_.edges[node].push_back({guard, to});
    }
  }

  static std::uint32_t end(bool good) { return good ? TopologyGraph::kGood : TopologyGraph::kBad; }

  const TopologyChoices& choices_;
  const Topology& topology_;
  const CoverModel& model_;
  ConstraintCompiler& compiler_;
  TopologyGraph graph_;
  std::map<const RuleChoice*, Condition> conditions_;
  std::map<std::tuple<std::size_t, bool, WalkState>, std::uint32_t> nodes_;
  std::vector<std::pair<std::uint32_t, WalkState>> open_;
};

/// Nodes from which some node of `from` can be reached.
std::vector<bool> leading_to(const TopologyGraph& graph, std::vector<bool> from) {
  std::vector<std::vector<std::uint32_t>> before(graph.edges.size());
  for (std::uint32_t n = 0; n < graph.edges.size(); ++n) {
    for (const GraphEdge& edge : graph.edges[n]) before[edge.to].push_back(n);
  }
  std::vector<std::uint32_t> open;
  for (std::uint32_t n = 0; n < from.size(); ++n) {
    if (from[n]) open.push_back(n);
  }
  while (!open.empty()) {
    const std::uint32_t n = open.back();
    open.pop_back();
    for (const std::uint32_t p : before[n]) {
      if (from[p]) continue;
      from[p] = true;
      open.push_back(p);
    }
  }
  return from;
}

}  // namespace

Result<TopologyGraph> build_topology_graph(const TopologyChoices& choices, const CoverModel& model,
                                           ConstraintCompiler& compiler) {
  return GraphBuilder(choices, model, compiler).build();
}

void simplify(TopologyGraph& graph, const std::vector<bool>& watched) {
  std::vector<bool> good(graph.edges.size(), false);
  good[TopologyGraph::kGood] = true;
  good = leading_to(graph, std::move(good));

  // Where a node is now: itself, an end, or the only place it leads to.
  std::vector<std::uint32_t> now(graph.edges.size());
  for (std::uint32_t n = 0; n < now.size(); ++n) {
    now[n] = n > TopologyGraph::kBad && !good[n] ? TopologyGraph::kBad : n;
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::uint32_t n = static_cast<std::uint32_t>(now.size()) - 1; n > TopologyGraph::kBad;
         --n) {
      if (now[n] != n) continue;
      for (GraphEdge& edge : graph.edges[n]) {
        while (now[edge.to] != edge.to) edge.to = now[edge.to];
      }
      const std::uint32_t first = graph.edges[n][0].to;
      const bool one_way = std::all_of(graph.edges[n].begin(), graph.edges[n].end(),
                                       [&](const GraphEdge& edge) { return edge.to == first; });
      // A node that leads only to itself is a loop, not a way.
      if (!one_way || first == n || watched[n]) continue;
      now[n] = first;
      changed = true;
    }
  }
  for (std::uint32_t& start : graph.starts) {
    while (now[start] != start) start = now[start];
  }
  for (std::uint32_t n = 0; n < now.size(); ++n) {
    if (now[n] != n) graph.edges[n].clear();
  }
}

}  // namespace greynic::testgen
