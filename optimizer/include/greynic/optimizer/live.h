#pragma once

/// A proven layout that follows its rules: one rule comes, goes or changes its weight, and only what
/// that concerns is changed and proven, in microseconds where a new layout takes seconds.
///
/// How: each rule's entries are known, and each table finds the entries that a set of packets meets.
/// A rule that goes takes its entries with it. Then the packets of the changed rule are followed
/// through the tables. Where an entry takes some that the rules give to another rule, or where they
/// miss, that rule gets an entry there: in a matcher that looks at its bits and stands in the right
/// place, or in a new one. That ends when the proof (optimizer/src/live/proof.h) finds no fault. It
/// is exact, and about the packets that the step may concern; all others find what they found before.
///
/// Jumps and tables stay as they were made, so the layout slowly falls behind what optimize() would
/// make of the same rules. So matchers tried are counted at every step; when they exceed those of the
/// last full layout by max_drift, and where a step would take more work than it saves, optimize() lays
/// the rules out again. The rules of the layout may be max_growth times the input's, and max_drift
/// more.
///
/// Not thread-safe. Memory: some 2 KB a rule.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

/// Stays the same while the rule is there; may be given again after it went.
using RuleId = std::uint32_t;

/// Who makes a full layout, where a step needs one.
enum class FullLayouts : std::uint8_t {
  kAtOnce,  ///< the step
  kNever,   ///< nobody: the step fails with kTooBig, and replace() must follow
  /// A second thread. Until it is done, packets of the step and of those after it go to software, where
  /// all rules stand in their order: LiveStep::waits. Where the layout is only long of shape, steps go
  /// on meanwhile. When it is ready depends on the clock, and so do the layouts; each is proven.
  kBeside,
};

struct LiveOptions {
  OptimizeOptions search;   ///< for full layouts
  double max_drift = 0.05;  ///< of the matchers tried over those of the last full layout
  FullLayouts full_layouts = FullLayouts::kAtOnce;
  /// Index nodes and cubes that a step may look at before a full layout is cheaper.
  std::uint64_t most_comparisons = std::numeric_limits<std::uint64_t>::max();
};

/// What a step did.
struct LiveStep {
  RuleId rule = 0;
  std::size_t entries_added = 0;  ///< rules of the layout
  std::size_t entries_removed = 0;
  std::size_t matchers_added = 0;
  std::size_t matchers_removed = 0;
  std::uint64_t comparisons = 0;  ///< of the search and the proof
  bool rebuilt = false;           ///< by optimize(); then the counts above are 0
  /// In effect by software, until a full layout is: layout_now(). Then entries_added counts what sends
  /// packets there, and all other counts are 0.
  bool waits = false;
};

class LiveLayout {
 public:
  /// Proves the layout by verify() first. A rule's FlowRule::weight counts, where it is not 0: all
  /// rules with weights, or none. kBadInput: the layout does not do what the rules do; the message
  /// has a packet. kUnsupported: optimize() would not make such a layout.
  [[nodiscard]] static Result<LiveLayout> create(const RuleSet& rules, const Layout& layout,
                                                 LiveOptions options = {});
  LiveLayout(LiveLayout&&) noexcept;
  LiveLayout& operator=(LiveLayout&&) noexcept;
  ~LiveLayout();

  /// Rules of one table in their order: create() gave the ids 0, 1, ... in the order of its set.
  [[nodiscard]] std::vector<RuleId> ids(std::uint32_t table) const;

  /// Puts the rule in front of `before`, a rule of the same table, whatever their priorities; without
  /// it, behind all whose priority number is not greater. The errors are those of optimize().
  Result<LiveStep> insert(FlowRule rule, std::optional<RuleId> before = std::nullopt);
  Result<LiveStep> erase(RuleId rule);
  /// A weight that is positive; matchers may change their order.
  Result<LiveStep> weigh(RuleId rule, double weight);
  /// The input lines that the rule serves; nothing else changes.
  void set_lines(RuleId rule, std::vector<std::uint32_t> from);
  /// Lays the rules out by optimize().
  Result<LiveStep> rebuild();
  /// Until no packets go to software (FullLayouts::kBeside); layout() and the like do so first. The error
  /// of a full layout that failed: then no step is taken any more, and there is no layout.
  Result<void> wait();
  /// Takes these rules instead, laid out by optimize(); ids are given as by create().
  Result<void> replace(const RuleSet& rules);

  /// In their order; priorities are numbered anew.
  [[nodiscard]] RuleSet rules() const;
  [[nodiscard]] Layout layout() const;
  /// What is in effect, without waiting. In front of each table with rules that wait, entries jump
  /// to a table of software (LayoutTable::software) that has all of its rules in their order.
  [[nodiscard]] Result<Layout> layout_now() const;
  /// Mean over one packet of each rule, by weight.
  [[nodiscard]] double matchers_tried() const;
  /// 0.03: that is 3 % above the last full layout, when it was made.
  [[nodiscard]] double drift() const;
  [[nodiscard]] std::size_t layout_rules() const;

 private:
  class Kept;
  explicit LiveLayout(std::unique_ptr<Kept> kept);
  std::unique_ptr<Kept> kept_;
};

}  // namespace greynic::optimizer
