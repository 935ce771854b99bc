#pragma once

/// What is in effect while a full layout is under way that a step could not do without: packets that a
/// step since then concerns jump to a table of software, where all rules stand in their order. All
/// others find what they found before. So no step waits; its packets only cost more for a while.

#include <map>

#include "src/live/step.h"

namespace greynic::optimizer::live {

class Detours {
 public:
  [[nodiscard]] bool any() const { return !told_.empty(); }
  void clear();
  /// A step that was not taken on the state, or of which the state may have kept a part. `matches`: all
  /// packets that it concerns there.
  void add(Told told, std::uint32_t table, std::vector<Match> matches);
  /// A change of orders or lines, which concerns no packets.
  void note(Told told);
  [[nodiscard]] std::size_t entries() const { return entries_; }

  /// In front of what the state holds.
  [[nodiscard]] Layout layout(const State& state, const std::string& source) const;

 private:
  std::vector<Told> told_;
  std::map<std::uint32_t, std::map<Mask, std::vector<Match>>> matches_;  ///< by table
  std::size_t entries_ = 0;
};

}  // namespace greynic::optimizer::live
