/// resolve_conjunctions: each choice of one rule a clause becomes a plain rule.

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "field_value.h"
#include "greynic/rules/read_rules.h"
#include "line_text.h"

namespace greynic::rules {
namespace {

/// "conjunction(7,1/2)": the rule is one way to satisfy clause 1 of the 2 of conjunction 7.
struct Clause {
  std::uint32_t id = 0;
  std::uint32_t number = 0;  ///< 0-based
  std::uint32_t count = 0;
};

constexpr std::string_view kName = "conjunction(";
constexpr std::uint64_t kMostClauses = 64;  // ovs-fields(7)

bool is_clause(const Action& action) {
  return action.kind == ActionKind::kOther && action.text.starts_with(kName);
}

std::optional<Clause> clause_from(std::string_view text) {
  if (!text.ends_with(')')) return std::nullopt;
  text = text.substr(kName.size(), text.size() - kName.size() - 1);
  const std::size_t comma = text.find(',');
  const std::size_t slash = text.find('/');
  if (comma == std::string_view::npos || slash == std::string_view::npos || slash < comma) {
    return std::nullopt;
  }
  const auto id = number_from(text.substr(0, comma));
  const auto number = number_from(text.substr(comma + 1, slash - comma - 1));
  const auto count = number_from(text.substr(slash + 1));
  if (!id || !number || !count || *id > 0xffffffff) return std::nullopt;
  if (*count < 2 || *count > kMostClauses || *number < 1 || *number > *count) return std::nullopt;
  return Clause{static_cast<std::uint32_t>(*id), static_cast<std::uint32_t>(*number - 1),
                static_cast<std::uint32_t>(*count)};
}

/// One conjunction of one table at one priority: the rules that satisfy each clause.
struct Conjunction {
  std::vector<std::vector<const FlowRule*>> clauses;
};

struct ConjunctionKey {
  std::uint32_t table;
  std::uint32_t id;
  auto operator<=>(const ConjunctionKey&) const = default;
};
using Conjunctions = std::map<ConjunctionKey, std::map<RulePriority, Conjunction>>;

std::optional<std::uint32_t> conjunction_id(const Match& match) {
  for (const FieldMatch& entry : match.fields()) {
    if (entry.field == MatchField::kConjunctionId && entry.bits == full_mask(entry.field)) {
      return static_cast<std::uint32_t>(entry.value);
    }
  }
  return std::nullopt;
}

/// Both at once; empty when no packet can match both.
std::optional<Match> both(const Match& a, const Match& b) {
  if (!a.overlaps(b)) return std::nullopt;
  Match result = a;
  for (const FieldMatch& entry : b.fields()) {
    Masked sum{entry.value, entry.bits};
    for (const FieldMatch& known : a.fields()) {
      if (known.field != entry.field) continue;
      sum.value |= known.value;
      sum.bits |= known.bits;
    }
    result.set(entry.field, sum.value, sum.bits);
  }
  return result;
}

std::string place(const FlowRule& rule, const std::string& source) {
  return rule.from.empty() ? source : fmt::format("{}: line {}", source, rule.from.front() + 1);
}

/// Finds all clauses; a rule with a clause may have nothing but clauses as actions.
Result<Conjunctions> collect(const RuleSet& set) {
  Conjunctions found;
  for (const FlowRule& rule : set.rules) {
    const auto clauses = std::count_if(rule.actions.begin(), rule.actions.end(), is_clause);
    if (clauses == 0) continue;
    if (static_cast<std::size_t>(clauses) != rule.actions.size()) {
      return fail(ErrorCode::kBadInput, place(rule, set.source) +
                                            ": conjunction() stands beside other actions, which "
                                            "OpenFlow does not allow");
    }
    for (const Action& action : rule.actions) {
      const auto clause = clause_from(action.text);
      if (!clause) {
        return fail(ErrorCode::kBadInput, fmt::format("{}: '{}' must read like conjunction(7,1/2)",
                                                      place(rule, set.source), shown(action.text)));
      }
      auto& conjunction = found[{rule.table, clause->id}][rule.priority];
      if (conjunction.clauses.empty()) conjunction.clauses.resize(clause->count);
      if (conjunction.clauses.size() != clause->count) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: conjunction {} has {} clauses here and {} elsewhere",
                                place(rule, set.source), clause->id, clause->count,
                                conjunction.clauses.size()));
      }
      conjunction.clauses[clause->number].push_back(&rule);
    }
  }
  return found;
}

/// Multiplies the clauses out, clause by clause, onto `base` (the conj_id rule without its id).
std::vector<FlowRule> multiplied(const Conjunction& conjunction, FlowRule base) {
  std::vector<FlowRule> products = {std::move(base)};
  for (const auto& clause : conjunction.clauses) {
    std::vector<FlowRule> next;
    for (const FlowRule& product : products) {
      for (const FlowRule* rule : clause) {
        auto match = both(product.match, rule->match);
        if (!match) continue;
        next.push_back(product);
        next.back().match = std::move(*match);
        next.back().from.insert(next.back().from.end(), rule->from.begin(), rule->from.end());
      }
    }
    products = std::move(next);
  }
  return products;
}

double product_size(const Conjunction& conjunction) {
  double size = 1.0;
  for (const auto& clause : conjunction.clauses) size *= static_cast<double>(clause.size());
  return size;
}

}  // namespace

bool has_conjunctions(const RuleSet& rules) {
  return std::any_of(rules.rules.begin(), rules.rules.end(), [](const FlowRule& rule) {
    return std::any_of(rule.actions.begin(), rule.actions.end(), is_clause) ||
           conjunction_id(rule.match).value_or(0) != 0;
  });
}

Result<RuleSet> resolve_conjunctions(RuleSet rules, std::size_t most_rules) {
  const auto conjunctions = collect(rules);
  if (!conjunctions) return pass_on(conjunctions);
  RuleSet resolved{{}, rules.source};
  std::vector<FlowRule> products;  // after all plain rules: those win among equal priorities
  double size = 0.0;
  for (const FlowRule& rule : rules.rules) {
    if (std::any_of(rule.actions.begin(), rule.actions.end(), is_clause)) continue;
    const auto id = conjunction_id(rule.match);
    if (!id) {
      resolved.rules.push_back(rule);
      continue;
    }
    FlowRule base = rule;
    base.match.set(MatchField::kConjunctionId, 0, 0);
    if (*id == 0) {  // packets carry 0 until a conjunction sets it
      resolved.rules.push_back(std::move(base));
      continue;
    }
    const auto found = conjunctions->find({rule.table, *id});
    if (found == conjunctions->end()) continue;  // nothing sets this id
    for (const auto& [priority, conjunction] : found->second) {
      if (priority != rule.priority) {
        return fail(ErrorCode::kUnsupported,
                    fmt::format("{}: the conj_id={} rule and its clauses differ in priority; give "
                                "them the same",
                                place(rule, rules.source), *id));
      }
      size += product_size(conjunction);
      if (size + static_cast<double>(resolved.rules.size()) > static_cast<double>(most_rules)) {
        return fail(ErrorCode::kTooBig,
                    fmt::format("{}: its conjunctions stand for more than {} plain rules",
                                rules.source, most_rules));
      }
      for (FlowRule& product : multiplied(conjunction, base)) {
        std::sort(product.from.begin(), product.from.end());
        product.from.erase(std::unique(product.from.begin(), product.from.end()),
                           product.from.end());
        product.weight = 0.0;  // counters of the parts do not say how often they met
        products.push_back(std::move(product));
      }
    }
  }
  resolved.rules.insert(resolved.rules.end(), std::make_move_iterator(products.begin()),
                        std::make_move_iterator(products.end()));
  if (resolved.rules.empty()) {
    return fail(ErrorCode::kBadInput, rules.source + ": no rule can ever match");
  }
  return resolved;
}

}  // namespace greynic::rules
