#include "src/factored/factor.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "src/entering.h"
#include "src/factored/prefixes.h"
#include "src/factored/reading.h"
#include "src/factored/run.h"

namespace greynic::optimizer {
namespace {

using factored::Context;
using factored::Item;
using factored::kNothing;
using factored::LengthWeights;
using factored::Part;
using factored::part_of;
using factored::Prefix;
using factored::Run;
using factored::without;

constexpr std::size_t kMostBefore = 8;  ///< rules that may stand before a class in its table
constexpr std::size_t kMostBehind =
    16;  ///< rules behind the run in a table of a class; else a jump

/// What a rule still asks of packets that are in `region`.
Match asked_within(const Match& rule, const Match& region) {
  Match asked;
  for (const FieldMatch& part : rule.fields()) {
    const U128 left = part.bits & ~part_of(region, part.field).bits;
    asked.set(part.field, part.value & left, left);
  }
  return asked;
}

class Product {
 public:
  Product(const std::vector<const FlowRule*>& table, const Run& run, const Traffic& arriving,
          const FactorOptions& options)
      : table_(table),
        run_(run),
        arriving_(arriving),
        options_(options),
        read_(table, run),
        next_id_(options.first_free) {}

  struct Made {
    std::vector<FlowRule> rules;  ///< of the table and of those of its classes
    std::uint32_t first_free = 0;
  };
  /// None where the rules are too entangled, or too little is won.
  std::optional<Made> run() {
    const auto lists = read_.lists();
    if (!lists) return std::nullopt;
    note_rules(*lists);
    look_ahead();
    weigh_all(*lists);
    constexpr int kPrices = 12;
    constexpr double kDearer = 4.0;
    constexpr double kLeastPrice = 1e-7;
    const std::size_t most = table_.size() - (run_.end - run_.begin) / 2;
    double price = options_.price;
    for (int round = 0; round < kPrices; ++round) {
      write(*lists, price);
      if (entangled_) return std::nullopt;
      if (made_.size() <= most && next_id_ <= std::uint64_t{options_.last_table} + 1) {
        return Made{std::move(made_), next_id_};
      }
      price = std::max(kLeastPrice, kDearer * price);
    }
    return std::nullopt;
  }

 private:
  /// What of the packets each length of prefixes decides, first and in each class.
  void weigh_all(const std::vector<std::vector<Prefix>>& lists) {
    RuleSet set;
    std::vector<std::uint32_t> members;
    for (const FlowRule* rule : table_) {
      members.push_back(static_cast<std::uint32_t>(set.rules.size()));
      set.rules.push_back(*rule);
    }
    Effects effects;
    const Problem problem = make_problem(set, members, effects);
    Ternaries contexts(problem.rows.words());
    for (const Context& context : read_.contexts) {
      problem.columns.pack(context.match, contexts.value.add(), contexts.mask.add());
    }
    const Entering entered = entering(arriving_, problem.columns);
    const auto decider = first_matches(problem.rows, entered.packets);
    const auto within = first_matches(contexts, entered.packets);
    for (std::size_t i = 0; i < arriving_.flows.size(); ++i) {
      const TrafficFlow& flow = arriving_.flows[i];
      if (decider[i] < run_.begin) continue;  // decided before
      const double share = flow.weight / options_.all_weight;
      const auto* list = within[i] == kNoRow ? nullptr : &lists[within[i]];
      const std::size_t hit =
          list == nullptr
              ? 0
              : factored::longest_match(*list, read_.first, flow.packet.value(run_.first));
      if (list == nullptr || hit == list->size()) {
        first_weights_.missed += share;
        continue;
      }
      first_weights_.decided[(*list)[hit].length] += share;
      const std::uint32_t number = (*list)[hit].decision;
      const auto& seconds = second_list(number);
      const std::size_t second =
          factored::longest_match(seconds, read_.second, flow.packet.value(run_.second));
      LengthWeights& weights = second_weights_[number];
      if (second == seconds.size()) {
        weights.missed += share;
      } else {
        weights.decided[seconds[second].length] += share;
      }
    }
  }

  const std::vector<Prefix>& written(std::uint32_t number) {
    const auto found = written_.find(number);
    return found == written_.end() ? second_list(number) : found->second;
  }

  const std::vector<Prefix>& second_list(std::uint32_t number) {
    const auto [place, fresh] = second_.try_emplace(number);
    if (fresh) {
      auto list = factored::prefixes_of(read_.classes, number, read_.second, kNothing);
      entangled_ = entangled_ || !list;
      if (list) place->second = std::move(*list);
    }
    return place->second;
  }

  /// What is done to packets of a match.
  struct Done {
    Match match;
    std::vector<Action> actions;
    std::vector<std::uint32_t> from;
  };
  using DoneInOrder = std::vector<Done>;  // first wins

  [[nodiscard]] Done within(const Match& region, std::size_t rule) const {
    return {asked_within(table_[rule]->match, region), table_[rule]->actions, table_[rule]->from};
  }

  /// Does it what all rules of the run do?
  [[nodiscard]] bool does_the_same(std::size_t rule) {
    return read_.one_effect && read_.effects.number(table_[rule]->actions) == read_.effect.front();
  }

  /// What packets of a region meet besides the run.
  struct Around {
    DoneInOrder before;
    DoneInOrder behind;
  };
  /// Rules around the run, as what they still ask of packets in `region`. Of those before it, the last that do the same as
  /// the run may come behind. Where those behind are many, a jump to all.
  [[nodiscard]] Around around(const Match& region) {
    Around found;
    if (ahead_) {
      std::vector<std::size_t> meet;
      for (std::size_t i = 0; i < run_.begin; ++i) {
        if (table_[i]->match.overlaps(region)) meet.push_back(i);
      }
      std::size_t end = meet.size();
      while (end > 0 && does_the_same(meet[end - 1])) --end;
      for (std::size_t i = 0; i < meet.size(); ++i) {
        (i < end ? found.before : found.behind).push_back(within(region, meet[i]));
      }
    }
    const std::size_t moved = found.behind.size();
    for (std::size_t i = run_.end; i < table_.size(); ++i) {
      if (!table_[i]->match.overlaps(region)) continue;
      if (found.behind.size() == moved + kMostBehind) {
        found.behind.resize(moved);
        found.behind.push_back({{}, {Action::jump(all_behind())}, {}});
        break;
      }
      found.behind.push_back(within(region, i));
      if (found.behind.back().match.fields().empty()) break;
    }
    return found;
  }

  /// One bit of a field.
  struct Guard {
    MatchField field = MatchField::kInPort;
    U128 bit = 0;
    auto operator<=>(const Guard&) const = default;
  };
  /// May jumps to classes stand before the rules that the run has before it? Tables of classes then begin with what of these
  /// their packets can meet. Where all that do something else ask the same of one bit, packets are told apart by it,
  /// and those of the other side meet none of them.
  void look_ahead() {
    std::map<std::pair<Guard, bool>, std::size_t> asked;
    std::size_t others = 0;
    ahead_ = true;
    for (const Context& context : read_.contexts) {
      std::size_t before = 0;
      for (std::size_t i = 0; i < run_.begin; ++i) {
        if (!table_[i]->match.overlaps(context.match)) continue;
        if (does_the_same(i)) continue;
        ++before;
        ++others;
        const Match left_to_ask = asked_within(table_[i]->match, context.match);
        for (const FieldMatch& part : left_to_ask.fields()) {
          if (part.field == run_.first || part.field == run_.second ||
              options_.whole_fields.contains(part.field)) {
            continue;
          }
          for (U128 left = part.bits; left != 0; left &= left - 1) {
            const U128 bit = left & (~left + 1);
            ++asked[{{part.field, bit}, (part.value & bit) != 0}];
          }
        }
      }
      ahead_ = ahead_ && before <= kMostBefore;
    }
    for (const auto& [bit, count] : asked) {
      if (ahead_ && count == others) guard_ = bit.first;
    }
  }

  /// The id of a table of all rules behind the run.
  std::uint32_t all_behind() {
    if (!all_behind_) {
      DoneInOrder all;
      for (std::size_t i = run_.end; i < table_.size(); ++i) {
        all.push_back({table_[i]->match, table_[i]->actions, table_[i]->from});
      }
      all_behind_ = new_table(std::move(all));
    }
    return *all_behind_;
  }

  std::uint32_t new_table(DoneInOrder all) {
    const std::uint32_t id = next_id_++;
    for (std::size_t i = 0; i < all.size(); ++i) {
      small_.push_back({std::move(all[i].match), static_cast<RulePriority>(i), id,
                        std::move(all[i].actions), 0.0, std::move(all[i].from)});
    }
    return id;
  }

  using Asked = std::vector<std::pair<Match, std::uint32_t>>;  // and the effect
  [[nodiscard]] Asked asked_in(const DoneInOrder& all) {
    Asked asked;
    for (const Done& done : all) asked.emplace_back(done.match, read_.effects.number(done.actions));
    return asked;
  }

  /// What is done to packets of a class: in a table of its own, where it is not one thing.
  Done of_class(std::uint32_t number, const Around& around) {
    const std::uint32_t nothing = read_.classes.leaf(kNothing);
    DoneInOrder all = around.before;
    if (number != nothing) {
      for (const Prefix& prefix : written(number)) {
        const U128 bits = read_.second.first(prefix.length);
        Done done;
        if (prefix.decision == kNothing) {
          done = of_class(nothing, {{}, around.behind});
        } else {
          done.actions = read_.actions.at(prefix.decision);
          done.from = lines(number, prefix.value, bits);
        }
        done.match.set(run_.second, prefix.value, bits);
        all.push_back(std::move(done));
      }
    }
    all.insert(all.end(), around.behind.begin(), around.behind.end());
    if (all.empty()) {
      entangled_ = true;  // a miss cannot be written as a rule
      return {};
    }
    if (all.front().match.fields().empty()) return all.front();
    // What stands around counts by what is asked and done, not by the rules that say so.
    std::tuple<std::uint32_t, Asked, Asked> key{number, asked_in(around.before),
                                                asked_in(around.behind)};
    auto known = known_.find(key);
    if (known == known_.end()) {
      known = known_.emplace(std::move(key), new_table(std::move(all))).first;
    }
    return {{}, {Action::jump(known->second)}, {}};
  }

  /// Which rules speak of the packets of each class.
  void note_rules(const std::vector<std::vector<Prefix>>& lists) {
    for (std::size_t i = 0; i < read_.contexts.size(); ++i) {
      for (const Prefix& prefix : lists[i]) {
        const U128 bits = read_.first.first(prefix.length);
        std::set<std::uint32_t>& rules = rules_of_class_[prefix.decision];
        for (std::size_t part = 0; part < read_.contexts[i].parts.size(); ++part) {
          const Part& asked = read_.contexts[i].parts[part];
          if (((asked.value ^ prefix.value) & asked.bits & bits) != 0) continue;
          rules.insert(read_.contexts[i].rules[part].begin(), read_.contexts[i].rules[part].end());
        }
      }
    }
  }

  /// Lines of the input that an entry of a class serves.
  [[nodiscard]] std::vector<std::uint32_t> lines(std::uint32_t number, U128 value, U128 bits) {
    std::set<std::uint32_t> lines;
    for (const std::uint32_t rule : rules_of_class_[number]) {
      const Item& item = read_.items[read_.key_of_rule[rule - run_.begin]];
      if (((item.value ^ value) & item.bits & bits) != 0) continue;
      lines.insert(table_[rule]->from.begin(), table_[rule]->from.end());
    }
    return {lines.begin(), lines.end()};
  }

  void add(FlowRule rule) {
    rule.priority = static_cast<RulePriority>(made_.size());
    made_.push_back(std::move(rule));
  }

  void add_table(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) add(*table_[i]);
  }

  void add_jump(std::uint32_t number, const Match& match) {
    FlowRule rule;
    rule.table = table_.front()->table;
    rule.match = match;
    Done done = of_class(number, around(match));
    rule.actions = std::move(done.actions);
    rule.from = std::move(done.from);
    add(std::move(rule));
  }

  /// Prefixes written out where that is worth `price` an entry.
  void write(std::vector<std::vector<Prefix>> lists, double price) {
    factored::write_out(lists, read_.first, first_weights_, false, price);
    written_ = second_;
    for (auto& [number, list] : written_) {
      if (list.empty()) continue;
      const std::uint32_t first = list.front().decision;
      const bool any_order =
          std::ranges::all_of(list, [&](const Prefix& prefix) { return prefix.decision == first; });
      std::vector<std::vector<Prefix>> lone = {std::move(list)};
      factored::write_out(lone, read_.second, second_weights_[number], any_order, price);
      list = std::move(lone.front());
    }
    next_id_ = options_.first_free;
    known_.clear();
    all_behind_.reset();
    small_.clear();
    made_.clear();
    if (!ahead_) add_table(0, run_.begin);
    for (std::size_t i = 0; i < read_.contexts.size(); ++i) {
      for (const Prefix& prefix : lists[i]) {
        Match match = read_.contexts[i].match;
        match.set(run_.first, prefix.value, read_.first.first(prefix.length));
        if (!guard_) add_jump(prefix.decision, match);
        for (const unsigned side : guard_ ? std::vector{0U, 1U} : std::vector<unsigned>{}) {
          Match guarded = match;
          const U128 bits = part_of(match, guard_->field).bits | guard_->bit;
          const U128 value = part_of(match, guard_->field).value | (side == 1 ? guard_->bit : 0);
          guarded.set(guard_->field, value, bits);
          add_jump(prefix.decision, guarded);
        }
      }
    }
    if (ahead_) add_table(0, run_.begin);
    add_table(run_.end, table_.size());
    made_.insert(made_.end(), std::make_move_iterator(small_.begin()),
                 std::make_move_iterator(small_.end()));
  }

  const std::vector<const FlowRule*>& table_;
  Run run_;
  const Traffic& arriving_;
  const FactorOptions& options_;
  factored::Reading read_;
  std::uint32_t next_id_;
  bool entangled_ = false;
  std::map<std::uint32_t, std::set<std::uint32_t>> rules_of_class_;  ///< places in the table
  LengthWeights first_weights_;
  std::map<std::uint32_t, LengthWeights> second_weights_;  ///< by class
  std::map<std::uint32_t, std::vector<Prefix>> second_;    ///< by class
  std::map<std::uint32_t, std::vector<Prefix>> written_;   ///< the same, of fewer lengths
  std::map<std::tuple<std::uint32_t, Asked, Asked>, std::uint32_t> known_;  ///< tables of classes
  bool ahead_ = false;          ///< jumps to classes come first
  std::optional<Guard> guard_;  ///< with this bit both ways
  std::optional<std::uint32_t> all_behind_;
  std::vector<FlowRule> small_;
  std::vector<FlowRule> made_;
};

}  // namespace

FactoredRules factor_tables(const RuleSet& rules, const ArrivingTraffic& arriving,
                            const FactorOptions& options) {
  FactoredRules made{{{}, rules.source}, 0};
  FactorOptions left = options;
  for (const auto& [id, members] : rules_by_table(rules)) {
    std::vector<const FlowRule*> table;
    for (const std::uint32_t rule : members) table.push_back(&rules.rules[rule]);
    const auto packets = arriving.find(id);
    std::optional<Product::Made> product;
    if (packets != arriving.end()) {
      const auto run = factored::product_in(table);
      if (run && !options.whole_fields.contains(run->first) &&
          !options.whole_fields.contains(run->second)) {
        product = Product(table, *run, packets->second, left).run();
      }
    }
    if (!product) {
      for (const FlowRule* rule : table) made.rules.rules.push_back(*rule);
      continue;
    }
    ++made.products;
    left.first_free = product->first_free;
    made.rules.rules.insert(made.rules.rules.end(), product->rules.begin(), product->rules.end());
  }
  return made;
}

}  // namespace greynic::optimizer
