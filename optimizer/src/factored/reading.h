#pragma once

/// What the rules of a product say, read bit by bit: of each context the classes of its first lookup, and of each class what it
/// decides in the second.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/factored/prefixes.h"
#include "src/factored/run.h"
#include "src/problem.h"

namespace greynic::optimizer::factored {

/// Rules that say the same of the first field, within a context.
struct Part {
  U128 value = 0;
  U128 bits = 0;
  std::vector<std::uint32_t> keys;  ///< ascending
};

/// What rules say of all fields but the two.
struct Context {
  Match match;
  std::vector<Part> parts;
  std::vector<std::vector<std::uint32_t>> rules;  ///< places in the table, by part
};

/// What a rule says of the second field, and what it does.
struct Item {
  U128 value = 0;
  U128 bits = 0;
  std::uint32_t effect = 0;
  auto operator<=>(const Item&) const = default;
};

class Reading {
 public:
  /// `table` must outlive it.
  Reading(const std::vector<const FlowRule*>& table, const Run& run);

  /// By context, the longest first; decisions are classes, as roots in `classes`. Call it once. None where contexts meet and
  /// neither holds the other, or where there is too much to read.
  [[nodiscard]] std::optional<std::vector<std::vector<Prefix>>> lists();

  FieldBits first, second;  ///< that the run looks at
  Effects effects;
  std::vector<std::uint32_t> effect;                     ///< by rule of the run
  std::map<std::uint32_t, std::vector<Action>> actions;  ///< by effect
  bool one_effect = false;
  std::vector<Item> items;                 ///< by key
  std::vector<std::uint32_t> key_of_rule;  ///< by rule of the run
  std::vector<Context> contexts;           ///< the narrow ones first
  DecisionTrees classes;                   ///< decisions: effects

 private:
  [[nodiscard]] static FieldBits bits_of(const std::vector<const FlowRule*>& table, const Run& run,
                                         MatchField field);
  /// Keys are items where all rules do the same, and else places of rules, as then the first wins.
  void find_keys();
  /// False where two contexts meet and neither holds the other.
  bool find_contexts();
  /// The tree of classes below the first `bit` bits; `held`: keys that match there whatever follows.
  std::uint32_t read_first(unsigned bit, const std::vector<Part>& parts,
                           std::vector<std::uint32_t> held);
  std::uint32_t class_of(const std::vector<std::uint32_t>& keys);
  std::uint32_t read_second(unsigned bit, const std::vector<std::uint32_t>& keys);

  const std::vector<const FlowRule*>& table_;
  Run run_;
  std::size_t steps_ = 0;
  DecisionTrees regions_;  ///< decisions: classes
  std::map<std::vector<std::uint32_t>, std::uint32_t> class_of_keys_;
};

}  // namespace greynic::optimizer::factored
