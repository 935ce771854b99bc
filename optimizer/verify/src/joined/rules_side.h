#pragma once

/// The rules of a table, some of them written as what becomes of their packets in the next table, and
/// so on: as far as a layout goes at once.

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "src/joined/onward.h"

namespace greynic::verify {

class RulesSide {
 public:
  /// First wins. The rules must outlive this.
  RulesSide(const std::vector<const FlowRule*>& rules, const Onward& onward);

  /// The ways that stand for the rules, in order.
  [[nodiscard]] std::vector<std::uint32_t> ways() const;
  struct Seen {
    const Match& match;
    const Actions& actions;  ///< plain
  };
  [[nodiscard]] Seen operator[](std::uint32_t way) const {
    return {*nodes_[way].match, *nodes_[way].actions};
  }
  /// Opens a way, and those behind it, until a packet of it has met `wanted`; false when it never does.
  bool open_until(std::uint32_t way, const Packet& packet, const Actions& wanted);
  /// Opens one way; false when nothing is known of what is behind it. Where many of the same actions were opened, all
  /// are: a table of the layout that many rules share goes as far for each of them.
  bool open(std::uint32_t way);
  /// So many ways were looked at, or so long lists of actions, that no more are: nothing is decided then.
  [[nodiscard]] bool is_full() const {
    return bytes_left_ == 0 || nodes_.size() >= kMostWays + 2 * rules_;
  }
  /// The layout is followed behind these actions, too: what that takes counts as well.
  void count_behind(const Actions& actions);

  /// A few hundred bytes each.
  static constexpr std::size_t kMostWays = 500'000;
  /// Of lists of actions; each that is another one is kept twice, and once as a text.
  static constexpr std::size_t kMostBytes = std::size_t{80} << 20;

 private:
  struct Node {
    const Match* match;
    const Actions* actions;
    std::vector<std::uint32_t> behind;  ///< empty until it was asked for
    bool opened = false;
  };
  static constexpr std::size_t kMany = 2;
  /// Nodes, by all that looks for the same actions: a second or two.
  static constexpr std::size_t kMostLookedThrough = 200'000'000;
  void look_behind(std::uint32_t way);
  [[nodiscard]] std::vector<Way> ways_behind(const Way& way);
  void mark_open(std::uint32_t way);
  void add_ways(std::uint32_t way, std::vector<std::uint32_t>& ways) const;

  const Onward& onward_;
  std::vector<Node> nodes_;
  std::list<std::vector<Way>> behind_;  ///< what nodes are made of that are no rules
  std::uint32_t rules_ = 0;             ///< the first nodes
  std::size_t bytes_left_ = kMostBytes;
  std::map<Actions, std::size_t> opened_;
  std::size_t looked_through_ = 0;
};

}  // namespace greynic::verify
