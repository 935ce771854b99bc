#include "cut_tree.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <queue>

#include "chain.h"
#include "table_cut.h"

namespace greynic::optimizer {
namespace {

/// Packets of one region and the rules that can match them there. A leaf until it is cut.
struct Node {
  explicit Node(Problem rules_here) : problem(std::move(rules_here)) {}
  Problem problem;  ///< without the bits that the region decides
  Deciders deciders;
  double cost = 0.0;                     ///< hoped for, as a leaf
  Cut cut;                               ///< the one to make, or that was made
  std::vector<std::vector<Word>> value;  ///< of each part, under cut.mask
  std::vector<std::unique_ptr<Node>> parts;
  std::unique_ptr<Node> rest;
  [[nodiscard]] bool is_cut() const { return rest != nullptr; }
  /// Its first rule takes every packet that comes here.
  [[nodiscard]] bool decided() const {
    if (is_cut() || problem.rows.size() != 1) return false;
    const Word* mask = problem.rows.mask[0];
    return std::all_of(mask, mask + problem.rows.words(), [](Word w) { return w == 0; });
  }
};

/// Leaves wait for their cut; the one that gains most for each rule it adds comes first.
struct Waiting {
  double worth;
  std::size_t number;  ///< of creation, so that ties fall the same way each time
  Node* node;
  bool operator<(const Waiting& other) const {
    return worth != other.worth ? worth < other.worth : number > other.number;
  }
};

/// Rows of a problem, in a region that decides the bits of `decided`.
Problem within(const Problem& problem, const std::vector<std::uint32_t>& rows,
               const std::vector<Word>& decided) {
  Problem part(problem.columns, problem.rows.words());
  for (const std::uint32_t row : rows) {
    Word* const value = part.rows.value.add();
    Word* const mask = part.rows.mask.add();
    bool all = true;
    for (std::size_t w = 0; w < problem.rows.words(); ++w) {
      value[w] = problem.rows.value[row][w] & ~decided[w];
      mask[w] = problem.rows.mask[row][w] & ~decided[w];
      all = all && mask[w] == 0;
    }
    part.effect.push_back(problem.effect[row]);
    part.rule.push_back(problem.rule[row]);
    part.weight.push_back(0.0);
    if (all) break;  // no later row can decide
  }
  return part;
}

Problem without_redundant(const Problem& problem) {
  const std::vector<bool> redundant = redundant_rows(problem);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t row = 0; row < redundant.size(); ++row) {
    if (!redundant[row]) kept.push_back(row);
  }
  return kept.size() == redundant.size() ? problem : part_of(problem, kept);
}

class TreeBuilder {
 public:
  TreeBuilder(const RuleSet& rules, const Rows& packets, const std::vector<double>& packet_weight,
              const TreeOptions& options)
      : rules_(rules), packets_(packets), weight_(packet_weight), options_(options) {}

  Tree run(const Problem& problem) {
    std::vector<std::uint32_t> all(packets_.size());
    std::iota(all.begin(), all.end(), 0U);
    const std::unique_ptr<Node> root = make_node(problem, std::move(all));
    root->problem.weight = problem.weight;  // with the trace on rules that no packet hits
    entries_ = root->problem.rows.size();
    total_cost_ = root->cost;
    if (!options_.single_table) {
      consider(*root);
      while (!waiting_.empty()) {
        Node& node = *waiting_.top().node;
        waiting_.pop();
        make_cut(node);
      }
    }
    next_id_ = options_.first_free;
    tables_.push_back({options_.table, {}});
    emit(*root, 0);
    return {std::move(tables_), root->is_cut() ? 0 : least_of_chain_};
  }

 private:
  std::unique_ptr<Node> make_node(Problem problem, std::vector<std::uint32_t> packets) {
    auto node = std::make_unique<Node>(std::move(problem));
    Problem& here = node->problem;
    Rows own(packets_.words());
    for (const std::uint32_t packet : packets) own.add(packets_[packet]);
    node->deciders = {std::move(packets), first_matches(here.rows, own)};
    std::fill(here.weight.begin(), here.weight.end(), 0.0);
    double missing = 0.0;
    for (std::size_t i = 0; i < node->deciders.packets.size(); ++i) {
      const double weight = weight_[node->deciders.packets[i]];
      const std::uint32_t row = node->deciders.row[i];
      (row == kNoRow ? missing : here.weight[row]) += weight;
    }
    node->cost = hoped_cost(here, missing);
    return node;
  }

  [[nodiscard]] std::size_t room() const { return options_.most_rules - entries_; }

  /// Finds the leaf's best cut and lets it wait for its turn. An entry's price is what the room
  /// left must buy on average to bring the whole cost down.
  void consider(Node& node) {
    constexpr std::size_t kFewRows = 2;
    if (node.problem.rows.size() <= kFewRows || node.deciders.packets.empty() || room() == 0) {
      return;
    }
    const double price = total_cost_ / static_cast<double>(room());
    const std::size_t most = node.problem.rows.size() + room();
    node.cut = best_cut(node.problem, packets_, weight_, node.deciders, price, most,
                        options_.most_tables - tables_added_);
    if (node.cut.mask.empty() || !(node.cut.cost < node.cost)) return;
    const double added = std::max(
        1.0, static_cast<double>(node.cut.entries) - static_cast<double>(node.problem.rows.size()));
    waiting_.push({(node.cost - node.cut.cost) / added, created_++, &node});
  }

  void make_cut(Node& node) {
    const std::size_t before = node.problem.rows.size();
    const Parts parts = split_rows(node.problem, node.cut.mask, before + room());
    if (parts.rows.empty()) return;  // the room has gone to others since
    if (parts.rows.size() > options_.most_tables - tables_added_) return;
    const auto part_of_packet =
        split_packets(node.problem, node.cut.mask, parts, packets_, node.deciders);
    std::vector<std::vector<std::uint32_t>> packets(parts.rows.size() + 1);
    for (std::size_t i = 0; i < part_of_packet.size(); ++i) {
      const std::size_t part = part_of_packet[i] == kNoRow ? parts.rows.size() : part_of_packet[i];
      packets[part].push_back(node.deciders.packets[i]);
    }
    std::size_t after = parts.rest.size();
    for (std::size_t part = 0; part < parts.rows.size(); ++part) {
      Problem inside = without_redundant(within(node.problem, parts.rows[part], node.cut.mask));
      node.parts.push_back(make_node(std::move(inside), std::move(packets[part])));
      const bool needs_table = !node.parts.back()->decided();
      after += node.parts.back()->problem.rows.size() + (needs_table ? 1 : 0);
      tables_added_ += needs_table ? 1 : 0;
      const Word* value = node.problem.rows.value[parts.example[part]];
      std::vector<Word> bits(value, value + packets_.words());
      for (std::size_t w = 0; w < bits.size(); ++w) bits[w] &= node.cut.mask[w];
      node.value.push_back(std::move(bits));
    }
    const std::vector<Word> nothing(packets_.words(), 0);
    node.rest = make_node(within(node.problem, parts.rest, nothing), std::move(packets.back()));
    entries_ = entries_ - before + after;
    double cost = node.rest->cost;
    for (const auto& part : node.parts) cost += part->decided() ? 0.0 : part->cost;
    for (const std::uint32_t packet : node.deciders.packets) cost += weight_[packet];
    total_cost_ += cost - node.cost;
    for (const auto& part : node.parts) consider(*part);
    consider(*node.rest);
    node.problem = Problem(node.problem.columns, packets_.words());  // its rows live on below
    node.deciders = {};
  }

  /// Appends the node's matchers to a table; parts get tables of their own.
  void emit(const Node& node, std::size_t table) {
    if (!node.is_cut()) return emit_chain(node, table);
    Matcher matcher{node.problem.columns.unpack_mask(node.cut.mask.data()), position(table), {}};
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const Node& part = *node.parts[i];
      FlowRule rule;
      if (part.decided()) {
        rule = rules_.rules[part.problem.rule[0]];
        rule.weight = std::min(1.0, part.problem.weight[0]);  // sums of shares round
      } else {
        rule.actions = {Action::jump(next_id_)};
        rule.weight = std::accumulate(
            part.deciders.packets.begin(), part.deciders.packets.end(), 0.0,
            [&](double sum, std::uint32_t packet) { return sum + weight_[packet]; });
        tables_.push_back({next_id_++, {}});
        emit(part, tables_.size() - 1);
      }
      rule.weight = std::min(1.0, rule.weight);
      rule.match = node.problem.columns.unpack(node.value[i].data(), node.cut.mask.data());
      rule.priority = matcher.priority;
      rule.table = tables_[table].id;
      matcher.rules.push_back(std::move(rule));
    }
    tables_[table].matchers.push_back(std::move(matcher));
    emit(*node.rest, table);
  }

  void emit_chain(const Node& node, std::size_t table) {
    if (node.problem.rows.size() == 0) return;
    const Problem& problem = node.problem;
    std::vector<std::uint32_t> all(problem.rows.size());
    std::iota(all.begin(), all.end(), 0U);
    const Chain chain = build_chain(problem, all);
    least_of_chain_ = chain.least;
    for (const Group& group : chain.groups) {
      Matcher matcher{
          problem.columns.unpack_mask(problem.rows.mask[group.rows.front()]), position(table), {}};
      for (const std::uint32_t row : group.rows) {
        FlowRule rule = rules_.rules[problem.rule[row]];
        rule.match = problem.columns.unpack(problem.rows.value[row], problem.rows.mask[row]);
        rule.priority = matcher.priority;
        rule.table = tables_[table].id;
        rule.weight = std::min(1.0, problem.weight[row]);
        matcher.rules.push_back(std::move(rule));
      }
      tables_[table].matchers.push_back(std::move(matcher));
    }
  }

  [[nodiscard]] RulePriority position(std::size_t table) const {
    return static_cast<RulePriority>(tables_[table].matchers.size());
  }

  const RuleSet& rules_;
  const Rows& packets_;
  const std::vector<double>& weight_;
  const TreeOptions& options_;
  std::priority_queue<Waiting> waiting_;
  std::size_t created_ = 0;
  std::size_t entries_ = 0;  ///< rules and jumps, as of now
  std::size_t tables_added_ = 0;
  double total_cost_ = 0.0;  ///< hoped for, as of now
  std::uint32_t next_id_ = 0;
  std::size_t least_of_chain_ = 0;  ///< of the latest chain
  std::vector<LayoutTable> tables_;
};

}  // namespace

Tree build_tree(const RuleSet& rules, const Problem& problem, const Rows& packets,
                const std::vector<double>& packet_weight, const TreeOptions& options) {
  return TreeBuilder(rules, packets, packet_weight, options).run(problem);
}

}  // namespace greynic::optimizer
