#pragma once

/// The tables of the set that packets go on to. A layout may do at once what the rules do in several
/// tables: then a rule and what follows it are written as one, and compared with that.
///
/// Example: in table 1 the rule `tcp` jumps to table 2, where `port 80` is dropped and all else
/// forwarded. One table on, that is `tcp, port 80`: drop, then `tcp`: forward.
///
/// What is done on the way counts: a match behind `set_field reg0=1` asks for no bit of reg0 any more,
/// and takes no packet when it asks for another value. Of actions that this room does not know, nothing is
/// known afterwards. Behind these only a table whose first rule takes every packet is looked into.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::verify {

/// All that was done to a packet so far; a jump to a table of the set, at the end, leads on.
using Actions = std::vector<Action>;

/// A lone drop does nothing, too.
[[nodiscard]] const Actions& plain(const Actions& actions);

/// Actions that end with a jump, and those of a rule where it leads.
[[nodiscard]] Actions followed_by(const Actions& actions, const Actions& then);

/// What such a list takes of memory.
[[nodiscard]] std::size_t bytes_of(const Actions& actions);

/// What is done to packets of a match, as they enter.
struct Way {
  Match match;
  Actions actions;
};

/// By table, in order of precedence.
using TablesOfSet = std::map<std::uint32_t, std::vector<const FlowRule*>>;

class Onward {
 public:
  /// The tables must outlive this.
  explicit Onward(const TablesOfSet& tables);

  /// Does any rule jump to a table of the set?
  [[nodiscard]] bool leads_anywhere() const { return leads_anywhere_; }
  /// Jumps of the set lead from greater numbers to smaller ones; empty where they may lead in a circle.
  [[nodiscard]] std::optional<std::size_t> rank(std::uint32_t table) const;
  /// The table that can be looked into behind these actions.
  [[nodiscard]] std::optional<std::uint32_t> next(const Actions& actions) const;
  /// First wins. What misses that table comes last, with the actions as they were. Nothing when the actions of all
  /// would take more memory.
  [[nodiscard]] std::optional<std::vector<Way>> one_table_on(const Way& way,
                                                             std::size_t most_bytes) const;
  /// One packet, followed as far as it can be.
  [[nodiscard]] Actions to_the_end(const Packet& entered, Actions actions) const;

 private:
  void find_ranks();

  const TablesOfSet& tables_;
  std::map<std::uint32_t, std::size_t> ranks_;
  bool leads_anywhere_ = false;
};

}  // namespace greynic::verify
