#pragma once

/// Masks, matches, actions, rules, rule sets: what an eSwitch is programmed with.
///
/// A Match is ternary: for each of its fields a value and a mask; every other field is a wildcard.
/// Fields are kept in canonical order and values have no bit outside their mask, so equal matches
/// are equal objects. Rules have no port ranges: readers expand them, and FlowRule::from keeps the
/// line of the input that a rule came from. Layouts may have some, for devices that match them: a
/// matcher then says for each rule a lowest and a highest value of a field.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "greynic/core/match_field.h"

namespace greynic {

/// Smaller wins, as in verbs and rte_flow. Open vSwitch's larger-wins is converted at the edge.
using RulePriority = std::uint32_t;

struct FieldMask {
  MatchField field;
  U128 bits;
  auto operator<=>(const FieldMask&) const = default;
};

/// Which bits are looked at: the identity of a flow group (a matcher).
class Mask {
 public:
  /// Adds bits of one field; zero bits add nothing.
  void add(MatchField field, U128 bits);
  /// The field is compared with a lowest and a highest value; no bits of it are in the mask.
  void add_range(MatchField field);
  [[nodiscard]] U128 bits(MatchField field) const;
  [[nodiscard]] const std::vector<FieldMask>& fields() const { return fields_; }
  [[nodiscard]] const std::vector<MatchField>& ranges() const { return ranges_; }
  /// Every bit of other is in this mask, and what it compares as a range is looked at too.
  [[nodiscard]] bool covers(const Mask& other) const;
  [[nodiscard]] std::size_t hash() const;
  auto operator<=>(const Mask&) const = default;

 private:
  std::vector<FieldMask> fields_;   ///< canonical order, no zero bits
  std::vector<MatchField> ranges_;  ///< canonical order
};

struct FieldMatch {
  MatchField field;
  U128 value;
  U128 bits;
  auto operator<=>(const FieldMatch&) const = default;
};

/// low <= value of the field <= high. Kept where it says nothing too, as its matcher asks it.
struct FieldRange {
  MatchField field;
  U128 low;
  U128 high;
  auto operator<=>(const FieldRange&) const = default;
};

/// A packet's header values; a field not set is zero.
class Packet {
 public:
  void set(MatchField field, U128 value);
  [[nodiscard]] U128 value(MatchField field) const;
  [[nodiscard]] const std::vector<std::pair<MatchField, U128>>& values() const { return values_; }
  auto operator<=>(const Packet&) const = default;

 private:
  std::vector<std::pair<MatchField, U128>> values_;  ///< canonical order, zeros left out
};

class Match {
 public:
  /// Sets value under mask `bits` for one field, replacing what stood there, a range too; zero bits
  /// remove it.
  void set(MatchField field, U128 value, U128 bits);
  /// Exact match on the whole field.
  void set(MatchField field, U128 value) { set(field, value, full_mask(field)); }
  /// A range of a field, of which no bits are set; only rules of layouts have some.
  void set_range(MatchField field, U128 low, U128 high);
  [[nodiscard]] const std::vector<FieldMatch>& fields() const { return fields_; }
  [[nodiscard]] const std::vector<FieldRange>& ranges() const { return ranges_; }
  [[nodiscard]] Mask mask() const;
  [[nodiscard]] bool matches(const Packet& packet) const;
  [[nodiscard]] bool overlaps(const Match& other) const;  ///< some packet matches both
  [[nodiscard]] bool contains(const Match& other) const;  ///< every packet of other matches this
  [[nodiscard]] std::size_t hash() const;
  auto operator<=>(const Match&) const = default;

 private:
  std::vector<FieldMatch> fields_;  ///< canonical order, no zero bits
  std::vector<FieldRange> ranges_;  ///< canonical order
};

/// low to high as prefixes of the field, lowest first.
[[nodiscard]] std::vector<FieldMatch> prefixes_of(const FieldRange& range);

/// The match without ranges: one for each choice of a prefix for each range.
[[nodiscard]] std::vector<Match> without_ranges(const Match& match);

enum class ActionKind : std::uint8_t {
  kForward,  ///< text: port name or number
  kDrop,
  kJump,        ///< number: table
  kSetField,    ///< field, value, bits
  kVxlanEncap,  ///< number: VNI; text: options, e.g. "src=10.0.0.1,dst=10.0.0.2,port=4789"
  kVxlanDecap,
  kPushVlan,  ///< number: VLAN id
  kPopVlan,
  kCount,
  kMeter,  ///< number: meter
  kOther,  ///< text: anything of a foreign format kept word for word; compared as text
};

struct Action {
  ActionKind kind = ActionKind::kDrop;
  std::uint64_t number = 0;
  MatchField field = MatchField::kInPort;
  U128 value = 0;
  U128 bits = 0;
  std::string text = {};
  auto operator<=>(const Action&) const = default;

  static Action forward(std::string port) {
    return {.kind = ActionKind::kForward, .text = std::move(port)};
  }
  static Action drop() { return {}; }
  static Action jump(std::uint64_t table) { return {.kind = ActionKind::kJump, .number = table}; }
  static Action other(std::string text) {
    return {.kind = ActionKind::kOther, .text = std::move(text)};
  }
};

struct FlowRule {
  Match match;
  RulePriority priority = 0;  ///< among the rules of one table; smaller wins
  std::uint32_t table = 0;
  std::vector<Action> actions;      ///< empty: drop
  double weight = 0.0;              ///< share of packets that hit it, 0..1; 0: unknown
  std::vector<std::uint32_t> from;  ///< 0-based input lines that this rule serves
  bool operator==(const FlowRule&) const = default;
};

/// Rules in input order. Among rules of equal table and priority that overlap, the earlier wins.
struct RuleSet {
  std::vector<FlowRule> rules;
  std::string source;  ///< file it came from, for messages
};

/// One mask and its rules, looked up at once by hashing: a flow group.
struct Matcher {
  Mask mask;
  RulePriority priority = 0;
  std::vector<FlowRule> rules;
  /// Rules that no packet hit for so long may leave the device; 0: they stay.
  std::uint32_t idle_seconds = 0;
  bool operator==(const Matcher&) const = default;
};

struct LayoutTable {
  std::uint32_t id = 0;
  std::vector<Matcher> matchers;  ///< tried in this order; the first rule that matches decides
  bool software = false;          ///< on the slow path: no table of the hardware
  bool operator==(const LayoutTable&) const = default;
};

/// Rules assigned to matchers, matchers ordered in tables, tables joined by jump. Entered at id 0.
struct Layout {
  std::vector<LayoutTable> tables;
  bool operator==(const Layout&) const = default;
  [[nodiscard]] std::size_t matcher_count() const;
  [[nodiscard]] std::size_t rule_count() const;
};

/// A layout for some models of a fleet's devices; without names, for all that it has.
struct ModelLayout {
  std::vector<std::string> models;
  Layout layout;
  bool operator==(const ModelLayout&) const = default;
};
/// One for each model, or one for all. No model is named twice.
using ModelLayouts = std::vector<ModelLayout>;

/// The same layout for devices that match no ranges: a matcher with ranges becomes one for each mask
/// of the prefixes that its rules are written out to.
[[nodiscard]] Layout without_ranges(Layout layout);
[[nodiscard]] bool has_ranges(const Layout& layout);

/// The layout once all rules that may leave the device have left.
[[nodiscard]] Layout without_idle(Layout layout);
[[nodiscard]] bool has_idle(const Layout& layout);

/// What a packet meets on its way: which rule decides and how many matchers were tried.
struct Lookup {
  const FlowRule* rule = nullptr;  ///< the last rule hit; null: nothing matched
  std::size_t matchers_tried = 0;
};

/// Reference lookup in a layout: walks matchers in order, follows jumps (at most 64).
[[nodiscard]] Lookup look_up(const Layout& layout, const Packet& packet,
                             std::uint32_t first_table = 0);

/// A table that jumps lead back to without a change to the packet, as its place in `tables`: what
/// goes round there goes round for ever.
[[nodiscard]] std::optional<std::size_t> endless_jumps(const Layout& layout);

/// Reference lookup in one table of a rule set: smallest priority number, then input order.
[[nodiscard]] const FlowRule* look_up(const RuleSet& rules, std::uint32_t table,
                                      const Packet& packet);

/// The plain layout of a rule set: per table, per priority run, one matcher for each mask in order
/// of first appearance; keeps the meaning of the set and moves nothing.
[[nodiscard]] Layout flat_layout(const RuleSet& rules);

/// Packets with weights: the traffic that a layout is judged under.
struct TrafficFlow {
  Packet packet;
  double weight = 1.0;      ///< relative packet rate
  std::uint32_t table = 0;  ///< where it enters
};
struct Traffic {
  std::vector<TrafficFlow> flows;
  /// The packets are examples, drawn at random from what rules match: others like them come in their place.
  bool drawn = false;
};

/// Mean number of matchers that a packet of this traffic is checked against.
[[nodiscard]] double expected_matchers_tried(const Layout& layout, const Traffic& traffic);

/// "ipv4_src=10.1.2.0/24,ip_protocol=17": for messages and reports.
[[nodiscard]] std::string to_string(const Match& match);
[[nodiscard]] std::string to_string(const Mask& mask);
[[nodiscard]] std::string to_string(const Packet& packet);
[[nodiscard]] std::string to_string(const Action& action);

}  // namespace greynic
