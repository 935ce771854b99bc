#include "src/spend/share.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace greynic::optimizer {
namespace {

class Sharing {
 public:
  explicit Sharing(std::vector<LayoutTable> tables) : tables_(std::move(tables)) {
    for (std::size_t i = 0; i < tables_.size(); ++i) place_[tables_[i].id] = i;
    kept_.resize(tables_.size(), kUnknown);
  }

  std::vector<LayoutTable> run() {
    for (std::size_t i = 0; i < tables_.size(); ++i) settle(i);
    std::vector<LayoutTable> left;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      if (kept_[i] == i || i == 0) left.push_back(std::move(tables_[i]));
    }
    return left;
  }

 private:
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);

  /// Those behind it first: two tables are equal when their jumps lead to tables that are one by then.
  void settle(std::size_t table) {
    if (kept_[table] != kUnknown) return;
    kept_[table] = table;
    std::size_t hash = tables_[table].software ? 1 : 0;
    for (Matcher& matcher : tables_[table].matchers) {
      std::stable_sort(matcher.rules.begin(), matcher.rules.end(),
                       [](const FlowRule& a, const FlowRule& b) { return a.match < b.match; });
      hash = hash * 31 + matcher.mask.hash();
      for (FlowRule& rule : matcher.rules) {
        hash = hash * 31 + rule.match.hash();
        for (Action& action : rule.actions) {
          const auto behind = place_.find(action.number);
          if (action.kind != ActionKind::kJump || behind == place_.end()) continue;
          settle(behind->second);
          action.number = tables_[kept_[behind->second]].id;
        }
      }
    }
    if (table == 0) return;
    for (const std::size_t other : by_hash_[hash]) {
      if (!alike(tables_[table], tables_[other])) continue;
      kept_[table] = other;
      serve(tables_[table], tables_[other]);
      return;
    }
    by_hash_[hash].push_back(table);
  }

  static bool alike(const LayoutTable& a, const LayoutTable& b) {
    return a.software == b.software &&
           std::ranges::equal(a.matchers, b.matchers, [](const Matcher& x, const Matcher& y) {
             return x.mask == y.mask && x.idle_seconds == y.idle_seconds &&
                    std::ranges::equal(x.rules, y.rules, [](const FlowRule& s, const FlowRule& t) {
                      return s.match == t.match && s.actions == t.actions;
                    });
           });
  }

  /// The rules that stay serve the lines of those that go, too.
  static void serve(const LayoutTable& gone, LayoutTable& kept) {
    for (std::size_t m = 0; m < kept.matchers.size(); ++m) {
      for (std::size_t r = 0; r < kept.matchers[m].rules.size(); ++r) {
        FlowRule& rule = kept.matchers[m].rules[r];
        const FlowRule& same = gone.matchers[m].rules[r];
        std::vector<std::uint32_t> both;
        std::vector<std::uint32_t> lines = same.from;
        std::sort(lines.begin(), lines.end());
        std::sort(rule.from.begin(), rule.from.end());
        std::set_union(rule.from.begin(), rule.from.end(), lines.begin(), lines.end(),
                       std::back_inserter(both));
        rule.from = std::move(both);
        rule.weight += same.weight;
      }
    }
  }

  std::vector<LayoutTable> tables_;
  std::map<std::uint64_t, std::size_t> place_;  ///< by id
  std::vector<std::size_t> kept_;               ///< by place, the table that stands for it
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_hash_;
};

}  // namespace

std::vector<LayoutTable> share_equal_tables(std::vector<LayoutTable> tables) {
  if (tables.size() < 3) return tables;
  return Sharing(std::move(tables)).run();
}

std::size_t rules_in(const std::vector<LayoutTable>& tables) {
  std::size_t sum = 0;
  for (const LayoutTable& table : tables) {
    for (const Matcher& matcher : table.matchers) sum += matcher.rules.size();
  }
  return sum;
}

}  // namespace greynic::optimizer
