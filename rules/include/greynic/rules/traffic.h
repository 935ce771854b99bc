#pragma once

/// Traffic: the packets, with weights, that a layout is judged under. Either a file
/// (docs/formats/traffic.md) or made from the rules themselves.

#include <cstdint>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

/// kBadInput names file, path inside it and remedy.
[[nodiscard]] Result<Traffic> read_traffic(const std::string& path);
[[nodiscard]] Result<Traffic> parse_traffic(std::string_view text, const std::string& source);
[[nodiscard]] Result<void> write_traffic(const Traffic& traffic, const std::string& path);

/// One packet inside each rule, entering at the rule's table: bits that the rule does not look at
/// are random. All weights are 1.
[[nodiscard]] Traffic uniform_traffic(const RuleSet& rules, std::uint64_t seed);

/// The same packets with Zipf weights: the flow of rank k weighs k^-exponent; ranks are a random
/// permutation of the rules. `exponent` is at least 0 (0: uniform). `packets`: inside each rule, of equal weight; what
/// is to serve packets that were not drawn, too, is better chosen by several.
[[nodiscard]] Traffic zipf_traffic(const RuleSet& rules, double exponent, std::uint64_t seed,
                                   std::size_t packets = 1);

/// "uniform", "zipf:1.1" or the path of a traffic file, which has its own packets.
[[nodiscard]] Result<Traffic> traffic_for(std::string_view what, const RuleSet& rules,
                                          std::uint64_t seed, std::size_t packets = 1);

}  // namespace greynic::rules
