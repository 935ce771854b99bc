#include "common/named_headers.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "greynic/core/check.h"
#include "greynic/core/wire_numbers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// One header that a field can be in: "ip_protocol=6".
struct Header {
  MatchField field;
  U128 value;
};

/// The headers that a field can be in by the table of fields; none when it needs none.
std::vector<Header> headers_of(MatchField field) {
  std::vector<Header> headers;
  std::string_view rest = info(field).needs;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    const std::string_view condition = rest.substr(0, bar);
    const std::size_t equals = condition.find('=');
    const auto named = match_field_named(condition.substr(0, equals));
    GREYNIC_CHECK(named.has_value());
    const auto value = field_value_from_string(*named, condition.substr(equals + 1));
    GREYNIC_CHECK(value.has_value());
    headers.push_back({*named, *value});
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
  }
  return headers;
}

/// Is the field, or the header that it is in, of one type of packets?
bool is_of_a_type(MatchField field) {
  const std::vector<Header> headers = headers_of(field);
  return std::any_of(headers.begin(), headers.end(), [](const Header& header) {
    return header.field == F::kEtherType || is_of_a_type(header.field);
  });
}

bool holds(const Match& match, const Header& header) {
  return exact_value(match, header.field) == header.value;
}

/// May a packet of this match have the header?
bool allows(const Match& match, const Header& header) {
  for (const FieldMatch& part : match.fields()) {
    if (part.field == header.field) return (header.value & part.bits) == part.value;
  }
  return true;
}

/// The protocols of ICMP belong to one address family each.
bool of_one_family(const Match& match) {
  const auto type = exact_value(match, F::kEtherType);
  const auto protocol = exact_value(match, F::kIpProtocol);
  return !(type == U128{ether_type::kIpv4} && protocol == U128{ip_protocol::kIcmpv6}) &&
         !(type == U128{ether_type::kIpv6} && protocol == U128{ip_protocol::kIcmp});
}

bool looks_at_icmp(const Match& match) {
  return std::any_of(match.fields().begin(), match.fields().end(), [](const FieldMatch& part) {
    return info(part.field).layer == FieldLayer::kIcmp;
  });
}

/// Appends the match with all headers named: several matches, one, or none when it contradicts
/// itself.
void name_headers(const Match& match, std::vector<Match>& named) {
  for (const MatchField field : fields_looked_at(match)) {
    const std::vector<Header> headers = headers_of(field);
    if (headers.empty() || std::any_of(headers.begin(), headers.end(), [&](const Header& header) {
          return holds(match, header);
        })) {
      continue;
    }
    for (const Header& header : headers) {
      if (!allows(match, header)) continue;
      Match with = match;
      with.set(header.field, header.value);
      name_headers(with, named);
    }
    return;
  }
  if (!looks_at_icmp(match) || of_one_family(match)) named.push_back(match);
}

bool names_a_header(MatchField field) {
  return field == F::kEtherType || field == F::kIpProtocol || field == F::kVlanPresent ||
         field == F::kSvlanPresent;
}

/// Do the headers that the match names itself leave no packet with this field?
bool excluded(const Match& match, const FieldMatch& part) {
  Match alone;
  for (const FieldMatch& other : match.fields()) {
    if (names_a_header(other.field)) alone.set(other.field, other.value, other.bits);
  }
  alone.set(part.field, part.value, part.bits);
  std::vector<Match> named;
  name_headers(alone, named);
  return named.empty();
}

}  // namespace

std::optional<U128> exact_value(const Match& match, MatchField field) {
  for (const FieldMatch& part : match.fields()) {
    if (part.field == field && part.bits == full_mask(field)) return part.value;
  }
  return std::nullopt;
}

std::optional<std::string> missing_header(const Match& match, MatchField field) {
  const std::string_view needs = info(field).needs;
  if (needs.empty()) return std::nullopt;
  const std::vector<Header> headers = headers_of(field);
  const bool met = std::any_of(headers.begin(), headers.end(),
                               [&](const Header& header) { return holds(match, header); });
  if (!met) {
    std::string readable(needs);
    for (std::size_t bar = 0; (bar = readable.find('|', bar)) != std::string::npos;) {
      readable.replace(bar, 1, " or ");
    }
    return fmt::format("it needs {} in the same rule", readable);
  }
  const bool icmp = info(field).layer == FieldLayer::kIcmp;
  const auto type = exact_value(match, F::kEtherType);
  const auto protocol = exact_value(match, F::kIpProtocol);
  const bool v4 = type == U128{ether_type::kIpv4};
  if (icmp && !(protocol == U128{v4 ? ip_protocol::kIcmp : ip_protocol::kIcmpv6})) {
    return "it needs ip_protocol=1 with IPv4 or ip_protocol=58 with IPv6";
  }
  const bool neighbour =
      field == F::kNdTarget || field == F::kNdSourceEthernet || field == F::kNdTargetEthernet;
  if (neighbour && (v4 || exact_value(match, F::kIcmpCode) != U128{0})) {
    return "it needs ether_type=0x86dd and icmp_code=0 in the same rule";
  }
  return std::nullopt;
}

namespace {

bool names_a_type(const FlowRule& rule) { return rule.match.mask().bits(F::kEtherType) != 0; }

void name_address_family(FlowRule& rule) {
  const Mask mask = rule.match.mask();
  const bool v6 = mask.bits(F::kIpv6Src) != 0 || mask.bits(F::kIpv6Dst) != 0 ||
                  mask.bits(F::kIpv6FlowLabel) != 0;
  rule.match.set(F::kEtherType, v6 ? ether_type::kIpv6 : ether_type::kIpv4);
}

/// Connections are of IP packets, and the rule has to say so.
bool tracks_connections(const FlowRule& rule) {
  return std::ranges::any_of(rule.actions,
                             [](const Action& action) { return action.text.starts_with("ct("); });
}

/// The rule once for each way to name its headers. Shares of traffic are not known for the parts,
/// so each gets an equal one.
std::vector<FlowRule> parts_with_headers(const FlowRule& rule) {
  std::vector<FlowRule> parts;
  for (const Match& match : headers_named(rule.match)) {
    std::vector<Match> matches = {match};
    if (tracks_connections(rule) && match.mask().bits(F::kEtherType) == 0) {
      matches.push_back(match);
      matches[0].set(F::kEtherType, ether_type::kIpv4);
      matches[1].set(F::kEtherType, ether_type::kIpv6);
    }
    for (Match& one : matches) {
      parts.push_back(rule);
      parts.back().match = std::move(one);
    }
  }
  for (FlowRule& part : parts) part.weight /= static_cast<double>(parts.size());
  return parts;
}

}  // namespace

RuleSet with_address_family(RuleSet rules) {
  std::set<std::uint32_t> outspoken;  // tables that name a type
  for (const FlowRule& rule : rules.rules) {
    if (names_a_type(rule)) outspoken.insert(rule.table);
  }
  for (FlowRule& rule : rules.rules) {
    if (!outspoken.contains(rule.table)) name_address_family(rule);
  }
  return rules;
}

std::vector<Match> headers_named(const Match& match) {
  Match possible = match;
  for (const FieldMatch& part : match.fields()) {
    if (headers_of(part.field).empty() || !excluded(match, part)) continue;
    if (part.value != 0) return {};  // no packet has the field, and without it it reads as zero
    possible.set(part.field, 0, 0);
  }
  for (const FieldRange& range : match.ranges()) {
    // A range of all values asks for nothing, so not for a header either.
    const bool all = range.low == 0 && range.high == full_mask(range.field);
    if (all ? !missing_header(match, range.field)
            : !excluded(match, {range.field, range.low, full_mask(range.field)})) {
      continue;
    }
    if (range.low != 0) return {};
    possible.set(range.field, 0, 0);
  }
  std::vector<Match> named;
  name_headers(possible, named);
  return named;
}

std::vector<MatchField> fields_looked_at(const Match& match) {
  std::vector<MatchField> fields;
  for (const FieldMatch& part : match.fields()) fields.push_back(part.field);
  for (const FieldRange& range : match.ranges()) fields.push_back(range.field);
  return fields;
}

RuleSet with_headers(RuleSet rules) {
  rules = with_address_family(std::move(rules));
  RuleSet complete{{}, std::move(rules.source)};
  for (const FlowRule& rule : rules.rules) {
    for (FlowRule& part : parts_with_headers(rule)) complete.rules.push_back(std::move(part));
  }
  return complete;
}

namespace {

/// What every packet in a table has, by all ways that lead there; empty when nobody can tell.
using Decided = std::map<std::uint32_t, std::optional<Match>>;

/// The match and everything decided before it; bits of the match win.
Match both(const Match& decided, const Match& match) {
  Match joined = decided;
  for (const FieldMatch& part : match.fields()) {
    U128 value = part.value;
    U128 bits = part.bits;
    for (const FieldMatch& before : decided.fields()) {
      if (before.field != part.field) continue;
      value |= before.value & ~part.bits;
      bits |= before.bits;
    }
    joined.set(part.field, value, bits);
  }
  return joined;
}

/// The bits that two matches look at and agree on.
Match agreed(const Match& one, const Match& other) {
  Match common;
  for (const FieldMatch& a : one.fields()) {
    for (const FieldMatch& b : other.fields()) {
      const U128 bits = a.bits & b.bits & ~(a.value ^ b.value);
      if (a.field == b.field && bits != 0) common.set(a.field, a.value & bits, bits);
    }
  }
  return common;
}

/// False where a word speaks of tables otherwise than these do.
bool add_tables_named(std::string_view text, std::set<std::uint32_t>& named) {
  const auto add = [&](std::size_t from) {
    std::uint32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + std::min(from, text.size()), end, number);
    if (read.ec == std::errc()) named.insert(number);
    return read.ec == std::errc();
  };
  for (std::size_t at = 0; (at = text.find("resubmit", at)) != text.npos; ++at) {
    const std::size_t comma = text.find(',', at);
    if (comma == text.npos || !add(comma + 1)) return false;
  }
  for (std::size_t at = 0; (at = text.find("table", at)) != text.npos; ++at) {
    if (text.substr(at + 5, 1) != "=" || !add(at + 6)) return false;
  }
  return true;
}

/// Tables that foreign words lead to: 5 and 9 in "resubmit(,5),ct(table=9)". None where words are not understood: then
/// nobody can tell what packets come to any table.
std::optional<std::set<std::uint32_t>> named_in_words(const Layout& layout) {
  std::set<std::uint32_t> named;
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const Action& action : rule.actions) {
          if (!add_tables_named(action.text, named)) return std::nullopt;
        }
      }
    }
  }
  return named;
}

Decided decided_by_jumps(const Layout& layout, const std::set<std::uint32_t>& entered) {
  std::map<std::uint32_t, const LayoutTable*> by_id;
  for (const LayoutTable& table : layout.tables) by_id[table.id] = &table;
  Decided decided = {{0, Match{}}};
  std::vector<std::uint32_t> order = {0};
  for (const std::uint32_t table : entered) {
    if (decided.try_emplace(table, Match{}).second) order.push_back(table);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto table = by_id.find(order[i]);
    if (table == by_id.end()) continue;
    const std::optional<Match> here = decided[order[i]];
    for (const Matcher& matcher : table->second->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const Action& action : rule.actions) {
          if (action.kind != ActionKind::kJump) continue;
          const auto to = static_cast<std::uint32_t>(action.number);
          const bool changed = rule.actions.size() > 1;  // a header may not be what it was
          std::optional<Match> there;
          if (here && !changed) there = both(*here, rule.match);
          const auto [known, fresh] = decided.try_emplace(to, there);
          if (fresh) {
            order.push_back(to);
          } else if (known->second) {
            if (there) there = agreed(*known->second, *there);
            if (there == known->second) continue;
            known->second = std::move(there);
            order.push_back(to);  // what was concluded from it may go too
          }
        }
      }
    }
  }
  return decided;
}

/// Calls `change` for every rule of the layout.
template <typename Change>
void for_each_rule(Layout& layout, const Change& change) {
  for (LayoutTable& table : layout.tables) {
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) change(table.id, rule);
    }
  }
}

/// Names the headers that the way to a rule's table has decided and its fields need.
void name_decided_headers(Layout& layout) {
  const auto entered = named_in_words(layout);
  if (!entered) return;
  const Decided decided = decided_by_jumps(layout, *entered);
  for_each_rule(layout, [&](std::uint32_t table, FlowRule& rule) {
    const auto known = decided.find(table);
    if (known == decided.end() || !known->second || known->second->fields().empty()) return;
    const Match whole = both(*known->second, rule.match);
    const auto type = exact_value(whole, F::kEtherType);
    const auto fields = fields_looked_at(rule.match);
    const bool of_a_type = std::any_of(fields.begin(), fields.end(), is_of_a_type);
    if (type && (of_a_type || tracks_connections(rule))) rule.match.set(F::kEtherType, *type);
    bool again = true;
    while (again) {
      again = false;
      for (const MatchField field : fields_looked_at(rule.match)) {
        for (const Header& header : headers_of(field)) {
          if (holds(rule.match, header) || !holds(whole, header)) continue;
          rule.match.set(header.field, header.value);
          again = true;
        }
      }
    }
  });
}

/// One matcher for each mask that the matcher's rules have with all headers named.
std::vector<Matcher> matchers_with_headers(const Matcher& matcher) {
  std::vector<Matcher> made;
  for (const FlowRule& rule : matcher.rules) {
    for (FlowRule& part : parts_with_headers(rule)) {
      const Mask mask = part.match.mask();
      auto place = std::ranges::find(made, mask, &Matcher::mask);
      if (place == made.end()) {
        place = made.insert(
            made.end(),
            {.mask = mask, .priority = matcher.priority, .idle_seconds = matcher.idle_seconds});
      }
      place->rules.push_back(std::move(part));
    }
  }
  return made;
}

}  // namespace

Layout with_headers(const Layout& layout) {
  Layout named = layout;
  name_decided_headers(named);
  bool outspoken = false;
  for_each_rule(named, [&](std::uint32_t, FlowRule& rule) { outspoken |= names_a_type(rule); });
  if (!outspoken) {
    for_each_rule(named, [](std::uint32_t, FlowRule& rule) { name_address_family(rule); });
  }
  for (LayoutTable& table : named.tables) {
    std::vector<Matcher> matchers;
    for (const Matcher& matcher : table.matchers) {
      for (Matcher& part : matchers_with_headers(matcher)) matchers.push_back(std::move(part));
    }
    table.matchers = std::move(matchers);
  }
  return named;
}

Layout with_prefixes(const Layout& layout) {
  Layout whole = layout;
  const auto entered = named_in_words(layout);
  if (!entered) return whole;
  const Decided decided = decided_by_jumps(layout, *entered);
  for (LayoutTable& table : whole.tables) {
    const auto known = decided.find(table.id);
    if (known == decided.end() || !known->second) continue;
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) {
        const Match joined = both(*known->second, rule.match);
        for (const FieldMatch& part : joined.fields()) {
          const FieldFormat format = info(part.field).format;
          const bool address = format == FieldFormat::kIpv4 || format == FieldFormat::kIpv6;
          const bool looked_at = rule.match.mask().bits(part.field) != 0;
          if (address && looked_at) rule.match.set(part.field, part.value, part.bits);
        }
        matcher.mask = rule.match.mask();
      }
    }
  }
  return whole;
}

}  // namespace greynic::flows
