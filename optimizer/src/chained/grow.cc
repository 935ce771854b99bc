#include "src/chained/grow.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "src/chained/cut.h"
#include "src/chained/key_numbers.h"
#include "src/chained/node_chain.h"
#include "src/chained/range_chain.h"

namespace greynic::optimizer::chained {
namespace {

class Grower {
 public:
  Grower(Units& units, const Rows& packets, const std::vector<double>& packet_weight,
         const std::vector<std::uint32_t>& decider, const GrowOptions& options)
      : units_(units),
        packets_(packets),
        packet_weight_(packet_weight),
        decider_(decider),
        options_(options),
        filters_(options.filters),
        first_(options.first),
        chooser_(units, packets, packet_weight, decider, options.entry_price),
        local_(units.rows.size(), kNoRow),
        row_inside_(units.rows.size(), kNoRow) {}

  Grown run(const Conflicts& conflicts) {
    Node root = whole(conflicts);
    plan_.emplace_back();
    grow(std::move(root), 0, kNowhere, {0, options_.most_jumps});
    if (!finish_plan()) return {{}, filtered_, {}};
    if (forks_.empty()) return {std::move(plan_), filtered_, {}};
    Plan filtered = plan_;
    leave_filters_out();
    if (!finish_plan()) plan_.clear();
    return {std::move(filtered), filtered_, std::move(plan_)};
  }

  std::vector<FirstStep> first_steps(const Conflicts& conflicts, std::size_t most) {
    Node root = whole(conflicts);
    std::vector<FirstStep> steps;
    scout(root);
    if (root.rows.size() == 0) return steps;
    for (Cut& cut : chooser_.best_cuts(root, chooser_.chain(root), most)) {
      steps.push_back({false, std::move(cut.mask)});
    }
    if (chooser_.best_guard(root)) steps.push_back({true, {}});
    return steps;
  }

 private:
  [[nodiscard]] Node whole(const Conflicts& conflicts) const {
    Node root(packets_.words());
    root.rows = units_.rows;
    root.conflicts = conflicts;
    root.packets.resize(packets_.size());
    std::iota(root.packets.begin(), root.packets.end(), 0U);
    return root;
  }

  [[nodiscard]] bool too_much() const {
    return entries_ > options_.most_rules || tried_ > options_.most_tried;
  }

  /// Jumps that lead to a table, and that may lead on from there or from its rests.
  struct Way {
    std::size_t jumps;
    std::size_t most;
    [[nodiscard]] bool open() const { return jumps + 3 <= most; }
    [[nodiscard]] bool one_more() const { return jumps < most; }
    /// A part gets some of what is left, so that there is some for the rest.
    [[nodiscard]] Way into_part() const { return {jumps + 1, jumps + 1 + (most - jumps) / 4}; }
  };

  /// Where the first filter on the way to a node came, and what is in the plan since.
  struct Fork {
    Node node;
    std::uint32_t table;
    std::uint32_t exit;
    Way way;
    std::size_t matchers;  ///< in the table before
    std::size_t entries;   ///< by the filter and all behind it
    double tried;          ///< there
    std::size_t begin;     ///< of the tables that were added
    std::size_t end = 0;
  };

  /// False when it has too many rules.
  bool finish_plan() {
    if (too_much()) return false;
    for (const auto& [table, chain] : chains_) put_chain(chain, table);
    chains_.clear();
    return true;
  }

  void leave_filters_out() {
    for (Fork& fork : std::exchange(forks_, {})) {
      auto& matchers = plan_[fork.table].matchers;
      matchers.erase(matchers.begin() + static_cast<std::ptrdiff_t>(fork.matchers), matchers.end());
      for (std::size_t table = fork.begin; table < fork.end; ++table) plan_[table] = {};
      entries_ -= fork.entries;
      tried_ -= fork.tried;
      filters_ = false;
      grow(std::move(fork.node), fork.table, fork.exit, fork.way);
    }
  }

  std::size_t grow_filtered(Node node, const Filter& filter, std::uint32_t table,
                            std::uint32_t exit, Way way) {
    filtered_ = true;
    const bool forks = options_.without_too && node.filters == 0;
    const std::size_t number = forks_.size();
    const std::size_t before = entries_;
    const double tried_before = tried_;
    if (forks) {
      forks_.push_back(
          {node, table, exit, way, plan_[table].matchers.size(), 0, 0.0, plan_.size()});
    }
    std::size_t deepest = 0;
    Node left = put_filter(std::move(node), filter, table, exit, way, deepest);
    deepest = std::max(deepest, grow(std::move(left), table, exit, way));
    if (forks) {
      forks_[number].entries = entries_ - before;
      forks_[number].tried = tried_ - tried_before;
      forks_[number].end = plan_.size();
    }
    return deepest;
  }

  /// Puts the matchers of a node into a table, at the end of what is there. The most jumps that
  /// lead to the tables that jump to the exit.
  std::size_t grow(Node node, std::uint32_t table, std::uint32_t exit, Way way) {
    std::size_t deepest = way.jumps;
    while (!too_much()) {
      if (end_at_last_word(node)) exit = kNowhere;
      scout(node);
      plan_[table].exit = exit;
      plan_[table].missing = missing(node);
      deepest = std::max(deepest, way.jumps);
      if (node.rows.size() == 0) return deepest;
      constexpr double kShort = 1.6;
      const double hoped = chooser_.chain(node);
      const double chain =
          options_.chains_as_made ? cost_as_made(units_, node, hoped, missing(node)) : hoped;
      const bool is_short = !(node.all_weight > 0.0) || chain <= kShort * node.all_weight;
      if (!room_for_tables() || !way.one_more()) {
        finish(node, chain, table);
        return deepest;
      }
      const bool may_cut = !is_short && way.open();
      if (may_cut && begin_as_told(node, table, exit, way, deepest)) continue;
      const auto filter = filters_ && may_cut ? chooser_.best_filter(node) : std::nullopt;
      if (filter) {
        return std::max(deepest, grow_filtered(std::move(node), *filter, table, exit, way));
      }
      constexpr std::size_t kFewCuts = 3;
      constexpr std::size_t kManyCuts = 24;
      const std::vector<Cut> cuts =
          may_cut ? chooser_.best_cuts(node, chain, kFewCuts) : std::vector<Cut>{};
      const auto guard = chooser_.best_guard(node);
      if (guard && guard->cost < chain && (cuts.empty() || guard->cost < cuts.front().cost)) {
        node = put_guard(std::move(node), *guard, table, exit, way, deepest);
        continue;
      }
      Node rest(packets_.words());
      // A cut may come to nothing: its cost is an estimate.
      const auto make = [&](const Cut& cut) {
        return cut.cost < chain && make_cut(node, cut.mask, table, exit, rest, way, deepest);
      };
      bool made = std::any_of(cuts.begin(), cuts.end(), make);
      if (!made && cuts.size() == kFewCuts) {
        const std::vector<Cut> more = chooser_.best_cuts(node, chain, kManyCuts);
        made = std::any_of(more.begin(), more.end(), make);
      }
      if (!made) {
        finish(node, chain, table);
        return deepest;
      }
      node = std::move(rest);
    }
    return deepest;
  }

  /// Takes the first step that is asked for; false where none is, or it comes to nothing.
  bool begin_as_told(Node& node, std::uint32_t& table, std::uint32_t exit, Way& way,
                     std::size_t& deepest) {
    const FirstStep* const step = std::exchange(first_, nullptr);
    if (step == nullptr) return false;
    if (step->guard) {
      const auto guard = chooser_.best_guard(node);
      if (guard) node = put_guard(std::move(node), *guard, table, exit, way, deepest);
      return guard.has_value();
    }
    Node rest(packets_.words());
    if (!make_cut(node, step->mask, table, exit, rest, way, deepest)) return false;
    node = std::move(rest);
    return true;
  }

  [[nodiscard]] bool room_for_tables() const { return plan_.size() < options_.most_tables; }

  void scout(Node& node) {
    const std::size_t n = node.rows.size();
    for (std::uint32_t row = 0; row < n; ++row) local_[node.rows.unit[row]] = row;
    node.weight.assign(n, 0.0);
    node.all_weight = 0.0;
    for (const std::uint32_t packet : node.packets) {
      node.all_weight += packet_weight_[packet];
      const std::uint32_t unit = decider_[packet];
      if (unit != kNoRow && local_[unit] != kNoRow) {
        node.weight[local_[unit]] += packet_weight_[packet];
      }
    }
    kinds_.restart(n);
    node.kind.clear();
    node.kind_example.clear();
    node.kind_masks.clear();
    node.kind_written.clear();
    node.kind_class.clear();
    classes_.restart(n);
    std::vector<std::uint32_t> first_of_class;
    std::vector<Word> parted = node.decided;  // bits that part no matchers
    for (std::size_t w = 0; w < parted.size(); ++w) parted[w] |= units_.ranged[w];
    for (std::uint32_t row = 0; row < n; ++row) {
      const std::uint32_t kind =
          kinds_.number(kind_key(node.rows.hull.mask[row], node.decided, node.rows.ports[row]));
      if (kind == node.kind_example.size()) {
        node.kind_example.push_back(row);
        double masks = 1.0;
        double written = 1.0;
        for (std::size_t field = 0; field < kPortFields; ++field) {
          const std::uint32_t set = node.rows.ports[row][field];
          if (set == 0 || units_.as_range[field]) continue;
          const auto all = static_cast<double>(units_.sets[set].size());
          const std::size_t guards = left_out(units_.sets[set], units_.slot[field]).size();
          masks *= guards > 0 ? std::min(all, 1.0 + static_cast<double>(guards)) : all;
          written *= all;
        }
        node.kind_masks.push_back(masks);
        node.kind_written.push_back(written);
        const std::uint32_t number = classes_.number(
            kind_key(node.rows.hull.mask[row], parted, units_.kept_ports(node.rows.ports[row])));
        if (number == first_of_class.size()) first_of_class.push_back(kind);
        node.kind_class.push_back(first_of_class[number]);
      }
      node.kind.push_back(kind);
    }
    for (const std::uint32_t unit : node.rows.unit) local_[unit] = kNoRow;
  }

  /// What of the conflicts of a node is left in a region inside of it, of its rows `from`.
  void inherit(const Node& node, std::vector<std::uint32_t> from, Node& inside) {
    from.resize(inside.rows.size());
    inside.conflicts = conflicts_within(units_, node.conflicts, inside.rows, from, row_inside_);
  }

  [[nodiscard]] double missing(const Node& node) const {
    double hit = 0.0;
    for (const double weight : node.weight) hit += weight;
    return std::max(0.0, node.all_weight - hit);
  }

  /// The node as a chain, the end of its table.
  void finish(const Node& node, double chain, std::uint32_t table) {
    tried_ += chain;
    if (units_.as_range[0] || units_.as_range[1]) {
      for (PlanMatcher& matcher : range_chain(units_, node)) {
        entries_ += matcher.entries.size();
        plan_[table].matchers.push_back(std::move(matcher));
      }
      return;
    }
    chains_.emplace_back(table, written_out(units_, node));
    entries_ += chains_.back().second.rows.size();
  }

  void put_chain(const Problem& chain, std::uint32_t table) {
    for (const Group& group : chain_of(chain).groups) {
      PlanMatcher matcher(chain.rows.mask[group.rows.front()], packets_.words());
      for (const std::uint32_t row : group.rows) {
        matcher.values.add(chain.rows.value[row]);
        matcher.entries.push_back({chain.rule[row], kNowhere, chain.weight[row]});
      }
      plan_[table].matchers.push_back(std::move(matcher));
    }
  }

  /// Puts the cut into the table and grows its parts. What is left to do goes to `rest`, in a table
  /// of its own when parts come back to it: then `table` becomes that one. False when the cut comes
  /// to nothing.
  bool make_cut(Node& node, const std::vector<Word>& mask, std::uint32_t& table, std::uint32_t exit,
                Node& rest, Way& way, std::size_t& deepest) {
    const CutParts parts = chooser_.split(node, mask);
    if (parts.parts.empty()) return false;
    if (parts.parts.size() + plan_.size() > options_.most_tables) return false;
    tried_ += node.all_weight;
    const std::size_t words = mask.size();
    const auto value_of = [&](std::size_t part) {
      return node.rows.hull.value[parts.parts[part].example];
    };
    part_keys_.restart(parts.parts.size());
    std::vector<Node> inside;
    inside.reserve(parts.parts.size());
    std::vector<Word> bits(words);
    for (std::size_t i = 0; i < parts.parts.size(); ++i) {
      part_keys_.number(hash_under(value_of(i), mask.data(), words));
      inside.emplace_back(words);
      inside[i].filters = node.filters;
      for (std::size_t w = 0; w < words; ++w) inside[i].decided[w] = node.decided[w] | mask[w];
      for (std::size_t w = 0; w < words; ++w) bits[w] = value_of(i)[w] & mask[w];
      for (const std::uint32_t row : parts.parts[i].rows) {
        units_.add_within(inside[i].rows, node.rows, row, bits.data(), mask.data());
      }
    }
    std::vector<std::uint32_t> undecided;
    for (const std::uint32_t packet : node.packets) {
      const std::uint32_t part =
          part_keys_.lookup(hash_under(packets_[packet], mask.data(), words));
      (part == kNoRow ? undecided : inside[part].packets).push_back(packet);
    }
    // The rest, and the packets that no part decides.
    rest.decided = node.decided;
    rest.filters = node.filters;
    for (const std::uint32_t row : parts.rest) {
      rest.rows.add(node.rows.hull.value[row], node.rows.hull.mask[row], node.rows.ports[row],
                    node.rows.unit[row]);
    }
    PlanMatcher matcher(mask.data(), words);
    bool comes_back = false;
    std::vector<bool> ends;
    for (std::size_t i = 0; i < inside.size(); ++i) {
      ends.push_back(end_at_last_word(inside[i]));
      comes_back = comes_back || !ends.back();
      inherit(node, parts.parts[i].rows, inside[i]);
    }
    inherit(node, parts.rest, rest);
    const bool something_left = rest.rows.size() > 0;
    std::uint32_t after = exit;
    if (comes_back && something_left) {
      after = static_cast<std::uint32_t>(plan_.size());
      plan_.emplace_back();
    }
    // A packet is decided in its part when its unit is there.
    for (std::size_t i = 0; i < inside.size(); ++i) {
      if (ends[i]) continue;
      for (const std::uint32_t unit : inside[i].rows.unit) local_[unit] = 0;
      for (const std::uint32_t packet : inside[i].packets) {
        const std::uint32_t unit = decider_[packet];
        if (unit == kNoRow || local_[unit] == kNoRow) undecided.push_back(packet);
      }
      for (const std::uint32_t unit : inside[i].rows.unit) local_[unit] = kNoRow;
    }
    std::sort(undecided.begin(), undecided.end());
    std::size_t last = way.jumps;  // jumps that lead to the parts' ends
    entries_ += parts.parts.size() * (comes_back ? 2 : 1);
    for (std::size_t i = 0; i < inside.size(); ++i) {
      for (std::size_t w = 0; w < words; ++w) bits[w] = value_of(i)[w] & mask[w];
      matcher.values.add(bits.data());
      PlanEntry entry;
      for (const std::uint32_t packet : inside[i].packets) entry.weight += packet_weight_[packet];
      if (inside[i].rows.takes_all(0)) {
        entry.unit = inside[i].rows.unit[0];
      } else {
        entry.table = static_cast<std::uint32_t>(plan_.size());
        plan_.emplace_back();
        last = std::max(last, grow(std::move(inside[i]), entry.table, after, way.into_part()));
      }
      matcher.entries.push_back(entry);
    }
    plan_[table].matchers.push_back(std::move(matcher));
    rest.packets = std::move(undecided);
    if (after == exit) {
      deepest = std::max(deepest, last);
    } else {
      way.jumps = last + 1;
      plan_[table].exit = after;
      plan_[table].missing = 0.0;
      for (const std::uint32_t packet : rest.packets)
        plan_[table].missing += packet_weight_[packet];
      table = after;
    }
    return true;
  }

  /// Puts the guard into the table, and grows what jumps away; what is behind it.
  Node put_guard(Node node, const Guard& guard, std::uint32_t table, std::uint32_t exit,
                 const Way& way, std::size_t& deepest) {
    const std::size_t words = guard.headers.size();
    const auto inside = [&](const std::vector<Word>& decided) {
      Node made(words);
      made.decided = decided;
      made.filters = node.filters;
      return made;
    };
    // Low ports of one prefix are decided where they lead to; of several, the protocol is.
    const Guard::Away& first = guard.away.front();
    const bool lone = guard.away.size() == 1;
    const std::vector<Word>& known = lone ? first.mask : guard.headers;
    std::vector<Word> decided(words);
    for (std::size_t w = 0; w < words; ++w) decided[w] = node.decided[w] | known[w];
    std::vector<Node> low;
    for (std::size_t protocol = 0; protocol < first.values.size(); ++protocol) {
      low.push_back(inside(decided));
      std::vector<std::uint32_t> from;
      for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
        if (!guard.meets(units_, node.rows, row, protocol)) continue;
        units_.add_within(low.back().rows, node.rows, row, first.values[protocol].data(),
                          known.data());
        from.push_back(row);
      }
      inherit(node, std::move(from), low.back());
    }
    std::vector<PlanMatcher> matchers;
    for (const Guard::Away& away : guard.away) {
      matchers.emplace_back(away.mask.data(), words);
      for (const auto& value : away.values) {
        matchers.back().values.add(value.data());
        matchers.back().entries.emplace_back();
      }
    }
    Node behind = inside(node.decided);
    for (const std::uint32_t packet : node.packets) {
      Node* place = &behind;
      for (std::size_t i = 0; i < matchers.size(); ++i) {
        for (std::size_t protocol = 0; protocol < low.size(); ++protocol) {
          const Guard::Away& away = guard.away[i];
          if (!matches(away.values[protocol].data(), away.mask.data(), packets_[packet], words))
            continue;
          place = &low[protocol];
          matchers[i].entries[protocol].weight += packet_weight_[packet];
        }
      }
      place->packets.push_back(packet);
    }
    std::vector<std::uint32_t> from;
    for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
      if (guard.holds(units_, node.rows, row)) continue;
      const Word* value = node.rows.hull.value[row];
      const Word* mask = node.rows.hull.mask[row];
      PortIds ports = node.rows.ports[row];
      const bool freed = guard.frees(ports[guard.field]) && covers_all(mask, guard.headers);
      if (freed) ports[guard.field] = 0;
      behind.rows.add(value, mask, ports, node.rows.unit[row]);
      from.push_back(row);
    }
    inherit(node, std::move(from), behind);
    for (std::size_t protocol = 0; protocol < low.size(); ++protocol) {
      PlanEntry to;
      const bool empty = low[protocol].rows.size() == 0;
      if (!empty && low[protocol].rows.takes_all(0)) {
        to.unit = low[protocol].rows.unit[0];
      } else if (empty && exit != kNowhere) {
        to.table = exit;
      } else {
        to.table = static_cast<std::uint32_t>(plan_.size());
        plan_.emplace_back();
        deepest =
            std::max(deepest, grow(std::move(low[protocol]), to.table, exit, way.into_part()));
      }
      for (PlanMatcher& matcher : matchers) {
        to.weight = matcher.entries[protocol].weight;
        matcher.entries[protocol] = to;
      }
    }
    tried_ += node.all_weight * static_cast<double>(matchers.size());
    for (PlanMatcher& matcher : matchers) {
      entries_ += matcher.entries.size();
      plan_[table].matchers.push_back(std::move(matcher));
    }
    return behind;
  }

  /// Sends the packets that some row of `mask` may match to a new table. Into `with` and `without`
  /// go the packets with and without the bits of such a row; `without` loses these rows.
  std::uint32_t send_away(const Node& node, const std::vector<Word>& mask, std::uint32_t table,
                          Node& with, Node& without) {
    const std::size_t words = mask.size();
    PlanMatcher matcher(mask.data(), words);
    std::map<std::uint64_t, std::size_t> known;
    const auto target = static_cast<std::uint32_t>(plan_.size());
    plan_.emplace_back();
    std::vector<std::uint32_t> from;
    for (std::uint32_t row = 0; row < node.rows.size(); ++row) {
      const Word* value = node.rows.hull.value[row];
      if (!covers_all(node.rows.hull.mask[row], mask)) {
        without.rows.add(value, node.rows.hull.mask[row], node.rows.ports[row],
                         node.rows.unit[row]);
        from.push_back(row);
        continue;
      }
      if (!known.try_emplace(hash_under(value, mask.data(), words), matcher.entries.size()).second)
        continue;
      Word* bits = matcher.values.add();
      for (std::size_t w = 0; w < words; ++w) bits[w] = value[w] & mask[w];
      matcher.entries.push_back({kNowhere, target, 0.0});
    }
    inherit(node, std::move(from), without);
    for (const std::uint32_t packet : node.packets) {
      const auto found = known.find(hash_under(packets_[packet], mask.data(), words));
      (found == known.end() ? without : with).packets.push_back(packet);
      if (found != known.end()) matcher.entries[found->second].weight += packet_weight_[packet];
    }
    entries_ += matcher.entries.size();
    plan_[table].matchers.push_back(std::move(matcher));
    return target;
  }

  /// Puts the filter into the table, and grows what jumps away. What is left is decided by the rows
  /// that do not look at all bits of the first mask.
  Node put_filter(Node node, const Filter& filter, std::uint32_t table, std::uint32_t exit,
                  const Way& way, std::size_t& deepest) {
    const auto child = [&] {
      Node made(filter.first.size());
      made.decided = node.decided;
      made.filters = node.filters + 1;
      return made;
    };
    Node without = child();
    Node one = child();
    Node other = child();
    Node both = child();
    const std::uint32_t first = send_away(node, filter.first, table, one, without);
    one.rows = node.rows;
    one.conflicts = node.conflicts;
    const std::uint32_t second = send_away(one, filter.second, first, both, other);
    both.rows = std::move(node.rows);
    both.conflicts = std::move(node.conflicts);
    deepest = std::max(deepest, grow(std::move(other), first, exit, {way.jumps + 1, way.most}));
    deepest = std::max(deepest, grow(std::move(both), second, exit, {way.jumps + 2, way.most}));
    return without;
  }

  Units& units_;
  const Rows& packets_;
  const std::vector<double>& packet_weight_;
  const std::vector<std::uint32_t>& decider_;
  const GrowOptions& options_;
  bool filters_;            ///< may be put in
  const FirstStep* first_;  ///< still to be taken
  CutChooser chooser_;
  std::vector<std::uint32_t> local_;       ///< by unit: its row in the node at hand
  std::vector<std::uint32_t> row_inside_;  ///< for inherit
  KeyNumbers kinds_;                       ///< for scout
  KeyNumbers classes_;                     ///< for scout
  KeyNumbers part_keys_;                   ///< for make_cut
  Plan plan_;
  /// Ends of tables, made once it is known that the plan is small enough.
  std::vector<std::pair<std::uint32_t, Problem>> chains_;
  std::size_t entries_ = 0;  ///< of the matchers so far
  double tried_ = 0.0;       ///< in them
  bool filtered_ = false;
  std::vector<Fork> forks_;
};

}  // namespace

std::vector<FirstStep> first_steps(Units& units, const Conflicts& conflicts, const Rows& packets,
                                   const std::vector<double>& packet_weight,
                                   const std::vector<std::uint32_t>& decider, double entry_price,
                                   std::size_t most) {
  GrowOptions options;
  options.entry_price = entry_price;
  return Grower(units, packets, packet_weight, decider, options).first_steps(conflicts, most);
}

Grown grow_plan(Units& units, const Conflicts& conflicts, const Rows& packets,
                const std::vector<double>& packet_weight, const std::vector<std::uint32_t>& decider,
                const GrowOptions& options) {
  return Grower(units, packets, packet_weight, decider, options).run(conflicts);
}

}  // namespace greynic::optimizer::chained
