#pragma once

/// Keeps a device's rule layout in a good order while its traffic changes: what
/// `greynic optimize --follow` does between two looks at the clock.
///
/// Each poll reads the device's own counters of the rules that it holds. From what came since the
/// last poll it computes what packets try now, and what they would try in the best order
/// (greynic/optimizer/reorder.h). When that would save more than `act_above`, it takes one step of
/// at most `most_rules` rules towards it. The step's layout is proven by the verifier before the
/// device gets it, as one transaction. The next poll with packets tells whether the gain came: less
/// than half of what was predicted, under what came since, and the layout of before returns.
///
/// So at every moment the device holds a layout that was proven for the rules, or, inside of a
/// transaction, what its journal puts back (greynic/flows/flow_driver.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/target/rule_holder.h"

namespace greynic::loop {

struct FollowOptions {
  std::string store;                ///< folder for the layout that the device has; empty: not kept
  double act_above = 0.05;          ///< share of the matchers tried that must be to save
  std::uint64_t most_rules = 1000;  ///< that change their place in one step
  std::uint64_t fewest_packets = 1000;  ///< between two polls; with fewer, nothing is concluded
  target::Placement placement;
};

enum class FollowDid {
  kWaited,      ///< too few packets to conclude anything
  kLeft,        ///< the order is good enough
  kStepped,     ///< a step was taken
  kConfirmed,   ///< the gain of the last step came
  kRolledBack,  ///< it did not
};

/// What one poll found and did. Means of matchers tried by the packets since the last poll.
struct FollowReport {
  FollowDid did = FollowDid::kWaited;
  double packets = 0.0;
  double tried_now = 0.0;
  double tried_best = 0.0;       ///< in the best order found
  double tried_predicted = 0.0;  ///< after the step that was taken, or that is judged
  std::size_t rules_changed = 0;
};

[[nodiscard]] std::string to_text(const FollowReport& report);
[[nodiscard]] std::string to_json_text(const FollowReport& report);

class Follower {
 public:
  /// Proves the layout and installs it. A layout in the store that is proven for the rules comes
  /// first: `layout` is then not used. `rules` as the holder spells them out. Errors: those of the
  /// holder, kUnsupported when it has no counters, kInternal when the layout is not equivalent.
  [[nodiscard]] static Result<Follower> start(RuleSet rules, const Layout& layout,
                                              target::RuleHolder& holder, FollowOptions options);

  [[nodiscard]] Result<FollowReport> poll();

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] bool resumed() const { return resumed_; }

 private:
  using Place = std::pair<std::uint32_t, Match>;  // table, match
  Follower(RuleSet rules, target::RuleHolder& holder, FollowOptions options)
      : rules_(std::move(rules)), holder_(&holder), options_(std::move(options)) {}

  [[nodiscard]] Result<void> prove(const Layout& layout) const;
  /// Installs a proven layout; it is the one that the store has from then on.
  [[nodiscard]] Result<void> put(const Layout& layout);
  [[nodiscard]] Result<std::map<Place, std::uint64_t>> read_counters();
  /// Packets by rule of a layout, since the counters were last kept.
  [[nodiscard]] std::vector<double> hits(const Layout& layout,
                                         const std::map<Place, std::uint64_t>& now) const;
  [[nodiscard]] Result<void> judge(FollowReport& report, const std::map<Place, std::uint64_t>& now);

  RuleSet rules_;
  target::RuleHolder* holder_;
  FollowOptions options_;
  Layout layout_;                        ///< that the device has
  std::map<Place, std::uint64_t> last_;  ///< counters at the last conclusion
  bool resumed_ = false;

  /// A step whose gain is still to come.
  struct Pending {
    Layout before;
    double predicted_gain;  ///< share of the matchers tried
    std::size_t rules_changed;
  };
  std::optional<Pending> pending_;
};

}  // namespace greynic::loop
