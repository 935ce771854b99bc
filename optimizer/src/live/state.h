#pragma once

/// A layout that is kept while its rules change: rules in their order, and tables of matchers of
/// entries, each found by the packets that it meets.
///
/// An entry is a part of a rule, its owner, or a jump. Where ports are told apart by a guard in front, an
/// entry may be a part of several rules that do the same, and each packet that hits it is one of
/// theirs. Jumps and tables stay as the layout had them that all was made from.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "greynic/core/result.h"
#include "src/live/cube_index.h"
#include "src/problem.h"

namespace greynic::optimizer::live {

inline constexpr std::uint32_t kNothing = 0xffffffff;

struct KeptRule {
  FlowRule rule;
  std::uint64_t order = 0;  ///< among the rules of its table; smaller wins
  std::uint32_t effect = 0;
  double weight = 1.0;
  bool present = false;
  bool lost = false;  ///< its packet waits to be counted again
  Cube packet{};      ///< one of its packets, which its weight is counted for
  Ids entries = {};   ///< that it owns
  Ids way = {};       ///< entries that its packet hits
};

struct Entry {
  Ids rules;                      ///< owners; none for a jump
  std::uint32_t jump = kNothing;  ///< place of a table
  std::uint32_t matcher = 0;
  std::uint32_t slot = 0;  ///< among the matcher's entries
  Ids counted;             ///< rules whose packet ends here
};

struct KeptMatcher {
  std::uint32_t table = 0;  ///< its place
  std::uint32_t position = 0;
  Cube mask{};  ///< values are 0
  Ids entries;
  double weight = 0.0;  ///< of the packets that hit it
};

struct KeptTable {
  std::uint32_t id = 0;
  std::uint32_t rank = 0;  ///< jumps lead to greater ones
  std::uint32_t root = 0;  ///< place of the table of the rules that packets came in by
  Cube region{};           ///< all packets that come here are of this cube
  Ids matchers;            ///< in the order in which they are tried
  CubeIndex index;         ///< of the entries
  double weight = 0.0;     ///< of the packets that come here
};

/// What a step changed.
struct Changes {
  Ids added;                    ///< entries; some may be gone again
  std::vector<Cube> uncovered;  ///< of entries that went though other rules had them, too
  std::size_t removed = 0;
  std::size_t matchers_added = 0;
  std::size_t matchers_removed = 0;
};

/// A packet of the match; bits that it leaves open are drawn, the same for the same match.
[[nodiscard]] Packet packet_of(const Match& match);

class State {
 public:
  /// `rules` by id; those not present are left out. The layout must do what the rules do.
  /// kUnsupported: an entry that lies in no rule of its actions, a table that two tables of the
  /// rules lead to, or more bits than cubes have.
  [[nodiscard]] static Result<State> create(std::vector<KeptRule> rules, const Layout& layout);

  // Rules.
  [[nodiscard]] const KeptRule& rule(std::uint32_t id) const { return rules_[id]; }
  [[nodiscard]] const std::vector<KeptRule>& rules() const { return rules_; }
  [[nodiscard]] const Cube& cube_of_rule(std::uint32_t id) const { return rule_cubes_[id]; }
  /// Does this state have columns for all that the rule looks at, and a table for it?
  [[nodiscard]] bool can_hold(const FlowRule& rule) const;
  /// The rule's `order` must be free. Its entries are for others to make.
  void add_rule(std::uint32_t id, KeptRule rule);
  /// Takes its entries out, too.
  void remove_rule(std::uint32_t id, Changes& changes);
  void set_order(std::uint32_t id, std::uint64_t order) { rules_[id].order = order; }
  void set_from(std::uint32_t id, std::vector<std::uint32_t> lines) {
    rules_[id].rule.from = std::move(lines);
  }
  /// Rules of the root's table that meet the cube, in their order.
  void rules_meeting(std::uint32_t root, const Cube& cube, Ids& found) const;

  // The layout.
  [[nodiscard]] const CubeSpace& space() const { return space_; }
  [[nodiscard]] const KeptTable& table(std::uint32_t place) const { return tables_[place]; }
  [[nodiscard]] std::uint32_t root_of(std::uint32_t rule) const {
    return place_of_.at(rules_[rule].rule.table);
  }
  [[nodiscard]] const Entry& entry(std::uint32_t id) const { return entries_[id]; }
  [[nodiscard]] bool has_entry(std::uint32_t id) const {
    return !entries_[id].rules.empty() || entries_[id].jump != kNothing;
  }
  /// Of its owners, the last in order. It has the effect of each.
  [[nodiscard]] const KeptRule& last_owner(std::uint32_t entry) const;
  /// What it matches of its table's region. It looks at its matcher's mask alone: the layout does not
  /// ask again for what the way here has shown.
  [[nodiscard]] const Cube& cube(std::uint32_t entry) const { return cubes_[entry]; }
  [[nodiscard]] const KeptMatcher& matcher(std::uint32_t id) const { return matchers_[id]; }
  [[nodiscard]] std::uint32_t position(std::uint32_t entry) const {
    return matchers_[entries_[entry].matcher].position;
  }
  /// Entries of the table that meet the cube, in the order in which they are tried.
  void entries_meeting(std::uint32_t table, const Cube& cube, Ids& found) const;
  /// All index nodes and cubes looked at so far.
  [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }

  /// An empty matcher for the cube's mask.
  std::uint32_t add_matcher(std::uint32_t table, std::uint32_t position, const Cube& mask,
                            Changes& changes);
  /// `cube` within the table's region.
  void add_entry(std::uint32_t matcher, const Cube& cube, std::uint32_t rule, Changes& changes);
  /// Its matcher goes with its last entry.
  void remove_entry(std::uint32_t id, Changes& changes);
  /// Moves the matchers that this rule's packet hits ahead of lighter ones and behind heavier ones, as
  /// far as all entries of both that meet do the same.
  void move_by_weight(std::uint32_t rule);

  // Cost.
  /// Sends the packet of a new rule through the layout.
  void count(std::uint32_t rule);
  /// And those whose entry went meanwhile.
  void count_lost();
  void weigh(std::uint32_t rule, double weight);
  /// Of the packets that come to the position.
  [[nodiscard]] double weight_past(std::uint32_t table, std::uint32_t position) const {
    return weight_from(tables_[table], position);
  }
  [[nodiscard]] double matchers_tried() const;  ///< mean over the packets
  [[nodiscard]] std::size_t entries() const { return entry_count_; }

  [[nodiscard]] Layout layout() const;

 private:
  explicit State(CubeSpace space) : space_(std::move(space)) {}
  friend class Reader;  // makes one of a layout

  void uncount(std::uint32_t rule);
  bool exchange_if_lighter(const KeptTable& table, std::uint32_t position);
  [[nodiscard]] bool may_change_places(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] double weight_from(const KeptTable& table, std::size_t position) const;
  void number_matchers(KeptTable& table, std::size_t from);

  CubeSpace space_;
  Mask columns_;
  Effects effects_;
  std::vector<KeptRule> rules_;
  std::vector<Cube> rule_cubes_;
  std::map<std::uint32_t, std::uint32_t> place_of_;  ///< of tables, by id
  std::vector<CubeIndex> rule_index_;                ///< by place of the root
  std::vector<KeptTable> tables_;
  std::vector<KeptMatcher> matchers_;
  std::vector<Entry> entries_;
  std::vector<Cube> cubes_;  ///< of entries
  Ids free_entries_;
  Ids free_matchers_;
  Ids lost_;  ///< rules whose packet hit an entry that went
  std::size_t entry_count_ = 0;
  double tried_ = 0.0;
  double weight_ = 0.0;
  mutable std::uint64_t looked_at_ = 0;
};

}  // namespace greynic::optimizer::live
