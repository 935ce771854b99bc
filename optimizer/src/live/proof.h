#pragma once

/// Is the layout still right where a step changed it? Exact: each claim is about all packets of a
/// cube, and a claim that is not shown at once is followed packet set by packet set.
///
/// A layout that did what the rules do before a rule came or went does so after it, too, when
///   - for each entry that came: no packet hits it that an earlier rule with other actions takes;
///   - for each table that packets of the changed rule may come to, and each entry that they may
///     hit there: none hits it that an earlier rule with other actions takes. When a rule came, that
///     is the new rule; when one went, it is any rule;
///   - none of them misses though a rule takes it.
/// All other packets find what they found before.

#include <functional>
#include <map>
#include <optional>

#include "src/live/state.h"

namespace greynic::optimizer::live {

/// Packets that are not treated as the rules say.
struct Fault {
  std::uint32_t table = 0;         ///< where they are decided
  std::uint32_t entry = kNothing;  ///< by this entry; kNothing: they miss
  std::uint32_t rule = 0;          ///< which ought to decide them
  Cube asked{};                    ///< the packets that the proof was at, all of the same table
};

class StepProof {
 public:
  /// `repair` changes the layout so that the fault's rule decides, and says whether it could. It
  /// may add entries, and replace one whose packets the new entry takes all.
  using Repair = std::function<bool(const Fault&)>;

  /// `most`: index nodes and cubes to look at, with repairs, before it gives up; packet sets, too.
  StepProof(const State& state, const Changes& changes, Repair repair, std::uint64_t most)
      : state_(state),
        changes_(changes),
        repair_(std::move(repair)),
        most_(most),
        before_(state.looked_at()) {}

  /// True: everything is right, or made right. `came`: the rule that came; kNothing when the rule
  /// of this cube went. False when a repair failed, or when it takes more work than a new layout.
  [[nodiscard]] bool holds(std::uint32_t root, const Cube& changed, std::uint32_t came);

 private:
  using Arrivals = std::map<std::pair<std::uint32_t, std::uint32_t>, Cube>;  // (rank, table)
  bool all_right(const Cube& changed);
  std::optional<Fault> fault_in_table(std::uint32_t table, const Cube& packets, Arrivals& next);
  std::optional<Fault> fault_of_entry(std::uint32_t entry, const Cube& packets, const Ids& in_table,
                                      const Ids& rules);
  bool follow(std::uint32_t table, std::uint32_t entry, const Cube& packets);
  bool follow_into(std::uint32_t table, const Cube& packets);
  bool follow_past(std::uint32_t table, const Ids& met, std::size_t next, Cube packets);
  /// True: the packets, which all end at the place asked for, are decided as the rules say.
  bool right(const Cube& packets);
  bool right_from(const Ids& rules, std::size_t next, Cube packets, std::uint32_t effect);
  [[nodiscard]] bool taken_before(const Ids& met, std::size_t until, const Cube& packets) const;
  [[nodiscard]] bool out_of_steps();
  [[nodiscard]] bool out_of_work();

  const State& state_;
  const Changes& changes_;
  Repair repair_;
  std::uint64_t most_;
  std::uint64_t before_;  ///< looked at by steps before
  std::uint32_t root_ = 0;
  std::uint32_t came_ = kNothing;
  std::uint64_t steps_ = 0;
  bool given_up_ = false;
  // What follow() looks for.
  std::uint32_t wanted_table_ = 0;
  std::uint32_t wanted_entry_ = kNothing;
  std::uint32_t fault_rule_ = kNothing;
};

}  // namespace greynic::optimizer::live
