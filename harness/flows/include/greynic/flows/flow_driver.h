#pragma once

/// Rule drivers: one way to look at and change the rules of a device, whichever interface it has
/// (Open vSwitch, tc flower, rte_flow).
///
/// A change is a transaction: the driver first takes a snapshot of the rules that are there and
/// writes it to a journal on disk, then installs the new ones. When the device refuses one, the
/// snapshot returns at once; when the process dies in between, it returns as soon as greynic opens
/// the same device again. A change that went through can be taken back by roll_back, also by a
/// later process.
///
/// What the fields of a match are called by each interface stands in core/match_field.h; what a
/// driver cannot express is refused by name (kUnsupported) before anything is touched.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/target/target.h"

namespace greynic::flows {

class Journal;

/// One line of what a device offers, as probed on it or fixed by its interface.
struct OfferedField {
  MatchField field;
  bool any_mask = false;   ///< every mask; else only the exact value, or what `forms` says
  std::string forms = {};  ///< where the field takes some masks and values only: which
};

/// What a device takes: `greynic devices TARGET` prints it.
struct Offer {
  std::vector<OfferedField> fields;
  std::vector<ActionKind> actions;
  std::uint32_t last_table = 0;
  RulePriority last_priority = 0;
  std::vector<std::string> notes;  ///< traits worth knowing, one sentence each
};

using RuleCount = target::CountedRule;

class FlowDriver {
 public:
  virtual ~FlowDriver();
  FlowDriver(const FlowDriver&) = delete;
  FlowDriver& operator=(const FlowDriver&) = delete;

  /// What the device takes.
  [[nodiscard]] virtual Result<Offer> probe() = 0;
  /// Would apply be accepted, as far as can be told without changing anything? kUnsupported names
  /// the rule and its field or action.
  [[nodiscard]] virtual Result<void> check(const RuleSet& rules) = 0;
  /// The rules that are there. Rules that apply installed come in their order; `from` and `weight`
  /// are not kept by devices, and an empty list of actions reads back as a drop.
  [[nodiscard]] virtual Result<RuleSet> list() = 0;
  /// The same with the device's packet and byte counters.
  [[nodiscard]] virtual Result<std::vector<RuleCount>> counters() = 0;

  /// Replaces all rules by these, in one transaction: all of them or, with an error, none.
  [[nodiscard]] Result<void> apply(const RuleSet& rules);
  /// Returns to the rules that were there before the first apply; nothing to do is no error.
  [[nodiscard]] Result<void> roll_back();
  /// Finishes what a process that died left half done: called when a device is opened.
  [[nodiscard]] Result<void> recover();

 protected:
  explicit FlowDriver(std::unique_ptr<Journal> journal);
  /// The rules that are there, in whatever text restore understands.
  [[nodiscard]] virtual Result<std::string> snapshot() = 0;
  [[nodiscard]] virtual Result<void> restore(const std::string& snapshot) = 0;
  /// Replaces all rules; may leave a part of them behind when it fails.
  [[nodiscard]] virtual Result<void> install(const RuleSet& rules) = 0;

 private:
  std::unique_ptr<Journal> journal_;
};

/// A layout as rules: table and order of the matcher become table and priority. Of two rules with
/// equal match in one matcher only the first is kept, for the second can never be hit.
[[nodiscard]] RuleSet rules_of(const Layout& layout);

/// kBadInput when two rules of equal table and priority overlap with different masks: devices do
/// not say which of them wins. A layout's rules never do.
[[nodiscard]] Result<void> check_unambiguous(const RuleSet& rules);

/// How messages name rule i: "rule 3 (ipv4_dst=10.0.0.2), of input line 17". The number counts the
/// rules that the device is given; the lines are those that the rule came from, where it says so.
[[nodiscard]] std::string place_of(const RuleSet& rules, std::size_t i);

}  // namespace greynic::flows
