#pragma once

/// Random rules that an interface can hold: every field it offers comes up, with the headers it
/// needs.

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/flows/flow_driver.h"

namespace greynic::flows {

struct RandomRules {
  /// Value and mask for a field, or nothing when this interface must not be given the field.
  std::function<std::optional<FieldMatch>(MatchField, std::mt19937_64&)> part;
  std::function<std::vector<Action>(const Match&, std::mt19937_64&)> actions;
  std::uint32_t tables = 1;
  RulePriority priorities = 65536;
};

/// Seed of a test: GREYNIC_SEED where it is set, to try others than the usual one.
[[nodiscard]] std::uint64_t seed_or(std::uint64_t usual);

/// `count` rules with distinct (table, priority), so that none is ambiguous.
[[nodiscard]] RuleSet random_rules(const RandomRules& kind, std::size_t count, std::uint64_t seed);

/// What of an offer never came up in these rules, or came up without being offered, by name: each
/// field, exactly and, where the offer says so, under a mask; each action.
[[nodiscard]] std::vector<std::string> missing_from(const Offer& offer, const RuleSet& rules);

/// Adds the headers that a field needs, as exact values, and the field itself.
void add_with_needs(Match& match, const FieldMatch& part, std::mt19937_64& random);

/// At times a counter, at times a change of the packet's mark.
[[nodiscard]] std::vector<Action> count_and_mark(std::mt19937_64& random);

/// A value and a mask that is exact, a prefix, or random.
[[nodiscard]] FieldMatch any_masked(MatchField field, std::mt19937_64& random);
[[nodiscard]] FieldMatch exactly(MatchField field, U128 value);
[[nodiscard]] U128 random_value(MatchField field, std::mt19937_64& random);

}  // namespace greynic::flows
