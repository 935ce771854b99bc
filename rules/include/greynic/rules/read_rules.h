#pragma once

/// Rule sets from files: ClassBench filters, Open vSwitch OpenFlow lists and datapath megaflows, tc
/// flower JSON, ClassBench-ng field lists and greynic's own layouts all come out as one RuleSet.
///
/// Port ranges are expanded to prefixes, larger-wins priorities become smaller-wins, and
/// FlowRule::from keeps the 0-based input line of every rule. What a format says that no match
/// field can hold is refused, never dropped. docs/formats/rules.md has a section for each format.

#include <optional>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

enum class Format {
  kClassbench,  ///< "@sip/len dip/len lo : hi lo : hi proto/mask flags/mask"; first line wins
  kOpenflow,    ///< ovs-ofctl dump-flows, with or without --no-stats
  kFields,    ///< "nw_src=10.0.0.1/32, tp_dst=80": ClassBench-ng's OpenFlow lists; first line wins
  kMegaflow,  ///< ovs-appctl dpctl/dump-flows, with or without -m
  kTcFilter,  ///< tc -j filter show
  kLayout,    ///< docs/formats/layout.md: matchers in order become priorities
};
[[nodiscard]] std::string_view to_string(Format format);  ///< "classbench"
[[nodiscard]] std::optional<Format> format_named(std::string_view name);

/// Reads a file (`.xz` and `.gz` are unpacked); without a format it is told from the text.
/// kBadInput names file, line and remedy; kUnsupported names what a match field cannot hold.
[[nodiscard]] Result<RuleSet> read_rules(const std::string& path,
                                         std::optional<Format> format = std::nullopt);
[[nodiscard]] Result<RuleSet> parse_rules(std::string_view text, const std::string& source,
                                          std::optional<Format> format = std::nullopt);

/// Which format a text has; empty when it looks like none.
[[nodiscard]] std::optional<Format> detect_format(std::string_view text);

/// Open vSwitch conjunctions (ovs-fields(7), conj_id) as plain rules. A packet that matches one
/// rule of each clause is treated by the conj_id rule; first-match tables cannot say that, so each
/// choice of one rule a clause becomes one plain rule with the actions of the conj_id rule. Rules
/// without conjunctions stay as they are; rules that need a conj_id that nothing sets can never
/// match and go. kUnsupported: a conj_id rule whose priority is not that of its clauses. kTooBig:
/// more than `most_rules` rules would come out.
[[nodiscard]] Result<RuleSet> resolve_conjunctions(RuleSet rules,
                                                   std::size_t most_rules = 2'000'000);

/// Is there anything for resolve_conjunctions to do?
[[nodiscard]] bool has_conjunctions(const RuleSet& rules);

}  // namespace greynic::rules
