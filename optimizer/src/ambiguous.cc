#include "ambiguous.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "problem.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kPairsNamed = 3;
constexpr std::size_t kPairsCounted = 100'000;

struct AmbiguousPair {
  std::uint32_t first;  ///< rows of the problem; the earlier wins here
  std::uint32_t second;
};

/// Pairs within the rows of one priority: a hash join of each two masks on their common bits.
class PairFinder {
 public:
  explicit PairFinder(const Problem& problem) : problem_(problem) {}

  void look_through(const std::vector<std::uint32_t>& rows) {
    const auto effect = [&](std::uint32_t row) { return problem_.effect[row]; };
    const bool alike = std::all_of(rows.begin(), rows.end(), [&](std::uint32_t row) {
      return effect(row) == effect(rows.front());
    });
    if (alike) return;
    const std::vector<Group> groups = groups_by_mask(problem_, rows);
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a; b < groups.size(); ++b) join(groups[a].rows, groups[b].rows, a == b);
    }
  }
  [[nodiscard]] const std::vector<AmbiguousPair>& named() const { return named_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void join(const std::vector<std::uint32_t>& one, const std::vector<std::uint32_t>& other,
            bool same) {
    const std::size_t words = problem_.rows.words();
    std::vector<Word> common(words);
    for (std::size_t w = 0; w < words; ++w) {
      common[w] = problem_.rows.mask[one.front()][w] & problem_.rows.mask[other.front()][w];
    }
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_key;
    for (const std::uint32_t row : one) {
      by_key[hash_under(problem_.rows.value[row], common.data(), words)].push_back(row);
    }
    for (const std::uint32_t row : other) {
      const auto found = by_key.find(hash_under(problem_.rows.value[row], common.data(), words));
      if (found == by_key.end()) continue;
      for (const std::uint32_t candidate : found->second) {
        if (count_ >= kPairsCounted) return;
        if (same && candidate >= row) continue;
        if (problem_.effect[candidate] == problem_.effect[row]) continue;
        if (!overlap(problem_.rows.value[candidate], problem_.rows.mask[candidate],
                     problem_.rows.value[row], problem_.rows.mask[row], words)) {
          continue;
        }
        ++count_;
        if (named_.size() < kPairsNamed) {
          named_.push_back({std::min(candidate, row), std::max(candidate, row)});
        }
      }
    }
  }

  const Problem& problem_;
  std::vector<AmbiguousPair> named_;
  std::size_t count_ = 0;
};

std::string name_of_rule(const FlowRule& rule) {
  const std::string match = rule.match.fields().empty() ? "everything" : to_string(rule.match);
  return rule.from.empty() ? match : fmt::format("line {} ({})", rule.from.front() + 1, match);
}

}  // namespace

std::vector<std::string> ambiguous_pairs(const RuleSet& rules) {
  std::vector<std::string> sentences;
  std::size_t more = 0;
  Effects effects;
  for (const auto& [table, members] : rules_by_table(rules)) {
    // Most sets give what does different things different priorities: then there is nothing to find.
    const auto tie = [&](std::uint32_t a, std::uint32_t b) {
      const FlowRule &one = rules.rules[a], &other = rules.rules[b];
      return one.priority == other.priority && one.actions != other.actions;
    };
    if (std::adjacent_find(members.begin(), members.end(), tie) == members.end()) continue;
    const Problem problem = make_problem(rules, members, effects);
    PairFinder finder(problem);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < members.size(); ++row) {
      const RulePriority priority = rules.rules[members[row]].priority;
      if (!rows.empty() && rules.rules[members[rows.back()]].priority != priority) {
        finder.look_through(rows);
        rows.clear();
      }
      rows.push_back(row);
    }
    if (!rows.empty()) finder.look_through(rows);
    std::size_t named = 0;
    for (const AmbiguousPair& pair : finder.named()) {
      if (sentences.size() >= kPairsNamed) break;
      sentences.push_back(
          fmt::format("table {}: {} and {} have equal priority, overlap and do different things, "
                      "which OpenFlow "
                      "leaves open; the earlier was taken to win",
                      table, name_of_rule(rules.rules[members[pair.first]]),
                      name_of_rule(rules.rules[members[pair.second]])));
      ++named;
    }
    more += finder.count() - named;
  }
  if (more > 0) sentences.push_back(fmt::format("so do {} more pairs of rules", more));
  return sentences;
}

}  // namespace greynic::optimizer
