#include "src/joined/usual.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "greynic/optimizer/optimize.h"
#include "src/joined/arrivals_by_rule.h"
#include "src/joined/pipeline.h"
#include "src/joined/residue.h"
#include "src/key_table.h"

namespace greynic::optimizer {
namespace {

using joined::ArrivalsByRule;
using joined::Cube;
using joined::Deeds;
using joined::Pipeline;

class UsualWays {
 public:
  UsualWays(const RuleSet& rules, const Traffic& traffic, const UsualOptions& options)
      : pipeline_(rules), options_(options), drawn_(traffic.drawn), order_(pipeline_.order()) {
    if (!order_) return;
    common_ = pipeline_.common_of_added(*order_, options.first_added);
    deeds_.emplace(pipeline_, options.first_added,
                   pipeline_.added_with_misses(*order_, options.first_added));
    arrivals_ = joined::arrivals_by_rule(pipeline_, traffic, 0);
  }

  UsualRules run() {
    if (!order_) return {pipeline_.rules(), 0};
    for (const auto& entry : pipeline_.tables()) find_groups(entry.first);
    choose();
    return made();
  }

 private:
  /// Some packets of a rule, and what they do behind it.
  struct Way {
    std::uint32_t row = 0;  ///< of the table that they are led on from
    Cube cube;
    std::uint32_t deed = 0;
    std::uint32_t rule = 0;  ///< of the set, that they hit behind
  };
  /// Ways of one table under one mask.
  struct Group {
    std::uint32_t table = 0;
    std::uint32_t first_row = kNoRow;
    double hit = 0.0;    ///< share of the packets
    double worth = 0.0;  ///< as is to be expected of others like them
    double gain = 0.0;   ///< without those that try the mask for nothing
    std::vector<Way> ways;
  };

  void find_groups(std::uint32_t id) {
    std::map<std::vector<Word>, Group> groups;
    std::vector<double> share(pipeline_.size(id) + 1,
                              0.0);  // by row: of the packets of those before
    for (std::uint32_t row = 0; row < pipeline_.size(id); ++row) {
      share[row + 1] = share[row];
      const auto arrived = arrivals_.find({id, row});
      if (arrived == arrivals_.end()) continue;
      for (const double one : arrived->second.share) share[row + 1] += one;
      find_ways(id, row, arrived->second, groups);
    }
    for (auto& [mask, group] : groups) {
      group.gain = group.worth - (share.back() - share[group.first_row] - group.hit);
      if (group.gain > 0.0) groups_.push_back(std::move(group));
    }
  }

  void find_ways(std::uint32_t id, std::uint32_t row, const joined::Arrivals& arrived,
                 std::map<std::vector<Word>, Group>& groups) {
    const std::uint32_t deed = deeds_->number(pipeline_.rule(id, row).actions);
    const std::optional<std::uint32_t> next = (*deeds_)[deed].next;
    if (!next) return;
    double all = 0.0;
    for (const double share : arrived.share) all += share;
    if (all < options_.least_share) return;
    Cube known = pipeline_.cube(id, row);
    std::vector<Word> mask = known.mask;
    if (const auto common = common_.find(id); common != common_.end()) {
      known = both(std::move(known), common->second);
    }
    std::vector<std::uint32_t> behind;
    pipeline_.for_each_behind(
        *next, pipeline_.any(), known, (*deeds_)[deed].set,
        [&](std::uint32_t other, const auto&, const std::vector<Word>& asked) {
          behind.push_back(other);
          for (std::size_t w = 0; w < mask.size(); ++w) mask[w] |= asked[w];
        });
    struct Alike {
      std::size_t packet = 0;
      double share = 0.0;
      double heaviest = 0.0;
    };
    std::unordered_map<std::vector<Word>, Alike, RowHash> kinds;
    for (std::size_t p = 0; p < arrived.share.size(); ++p) {
      std::vector<Word> value(arrived.packets[p], arrived.packets[p] + mask.size());
      for (std::size_t w = 0; w < mask.size(); ++w) value[w] &= mask[w];
      Alike& kind = kinds.try_emplace(std::move(value), Alike{p}).first->second;
      kind.share += arrived.share[p];
      kind.heaviest = std::max(kind.heaviest, arrived.share[p]);
    }
    std::map<std::vector<Word>, Alike> usual;  // in an order of its own
    for (const auto& [value, kind] : kinds) {
      const double worth = drawn_ ? kind.share - kind.heaviest : kind.share;
      if (worth >= options_.least_share) usual.emplace(value, kind);
    }
    for (const auto& [value, kind] : usual) {
      const double worth = drawn_ ? kind.share - kind.heaviest : kind.share;
      const std::optional<std::uint32_t> hit =
          hit_behind(*next, behind, arrived.packets[kind.packet], (*deeds_)[deed].set);
      if (!hit) continue;
      const std::uint32_t rule = pipeline_.tables().at(*next)[*hit];
      const std::uint32_t done = deeds_->followed_by(deed, rule);
      if (!(*deeds_)[done].may_stop) continue;
      Group& group = groups[mask];
      group.table = id;
      group.first_row = std::min(group.first_row, row);
      group.hit += kind.share;
      group.worth += worth;
      group.ways.push_back({row, {value, mask}, done, rule});
    }
  }

  /// The row of the next table that a packet hits, of those that it may hit; none when it may miss.
  [[nodiscard]] std::optional<std::uint32_t> hit_behind(std::uint32_t table,
                                                        const std::vector<std::uint32_t>& rows,
                                                        const Word* packet, const Cube& set) const {
    std::vector<Word> there(packet, packet + pipeline_.words());
    for (std::size_t w = 0; w < there.size(); ++w) {
      there[w] = (there[w] & ~set.mask[w]) | set.value[w];
    }
    const Ternaries& all = pipeline_.rows(table);
    for (const std::uint32_t row : rows) {
      if (row != kNoRow &&
          matches(all.value[row], all.mask[row], there.data(), pipeline_.words())) {
        return row;
      }
    }
    return std::nullopt;
  }

  /// Those first that save most for each rule.
  void choose() {
    std::ranges::stable_sort(groups_, std::greater{}, [](const Group& group) {
      return group.gain / static_cast<double>(group.ways.size());
    });
    std::size_t room = options_.most_added;
    for (Group& group : groups_) {
      const std::size_t size = group.ways.size();
      if (size > room || group.gain < options_.least_share * static_cast<double>(size)) continue;
      room -= size;
      added_ += size;
      for (Way& way : group.ways) before_[{group.table, way.row}].push_back(std::move(way));
    }
  }

  [[nodiscard]] UsualRules made() const {
    UsualRules made{{{}, pipeline_.rules().source}, added_};
    for (const auto& [id, members] : pipeline_.tables()) {
      const auto first = before_.lower_bound({id, 0});
      const bool changed = first != before_.end() && first->first.first == id;
      std::size_t begin = made.rules.rules.size();
      for (std::uint32_t row = 0; row < members.size(); ++row) {
        const FlowRule& given = pipeline_.rules().rules[members[row]];
        if (const auto ways = before_.find({id, row}); ways != before_.end()) {
          for (const Way& way : ways->second) made.rules.rules.push_back(rule_for(way, given));
        }
        made.rules.rules.push_back(given);
      }
      for (RulePriority place = 0; changed && begin < made.rules.rules.size(); ++begin) {
        made.rules.rules[begin].priority = place++;
      }
    }
    return made;
  }

  [[nodiscard]] FlowRule rule_for(const Way& way, const FlowRule& given) const {
    FlowRule rule = given;
    rule.match = pipeline_.columns().unpack(way.cube.value.data(), way.cube.mask.data());
    rule.actions = (*deeds_)[way.deed].actions;
    const std::vector<std::uint32_t>& more = pipeline_.rules().rules[way.rule].from;
    std::set<std::uint32_t> lines(rule.from.begin(), rule.from.end());
    lines.insert(more.begin(), more.end());
    rule.from.assign(lines.begin(), lines.end());
    return rule;
  }

  const Pipeline pipeline_;
  const UsualOptions& options_;
  const bool drawn_;
  const std::optional<std::vector<std::uint32_t>> order_;
  std::map<std::uint32_t, Cube> common_;
  std::optional<Deeds> deeds_;
  ArrivalsByRule arrivals_;
  std::vector<Group> groups_;
  std::map<joined::Place, std::vector<Way>> before_;
  std::size_t added_ = 0;
};

}  // namespace

UsualRules with_usual_ways(const RuleSet& rules, const Traffic& traffic,
                           const UsualOptions& options) {
  return UsualWays(rules, traffic, options).run();
}

}  // namespace greynic::optimizer
