#include "src/joined/residue.h"

#include <algorithm>

namespace greynic::optimizer::joined {
namespace {

bool meets(const Cube& a, const Cube& b) {
  return overlap(a.value.data(), a.mask.data(), b.value.data(), b.mask.data(), a.value.size());
}

bool holds(const Cube& wide, const Cube& narrow) {
  return contains(wide.value.data(), wide.mask.data(), narrow.value.data(), narrow.mask.data(),
                  wide.value.size());
}

}  // namespace

std::uint32_t Deeds::number(const std::vector<Action>& actions) {
  const auto [known, fresh] =
      known_.try_emplace(actions, static_cast<std::uint32_t>(deeds_.size()));
  if (fresh) {
    const std::int64_t to = table_behind(actions);
    const bool leads_to_added = to >= std::int64_t{first_added_};
    const bool may_stop =
        !leads_to_added ||
        (actions.size() == 1 && !with_misses_.contains(static_cast<std::uint32_t>(to)));
    deeds_.push_back(
        {actions, pipeline_.next(actions, kMostLookedInto), may_stop, pipeline_.written(actions)});
  }
  return known->second;
}

std::uint32_t Deeds::followed_by(std::uint32_t deed, std::uint32_t rule) {
  const auto [known, fresh] = after_.try_emplace({deed, rule});
  if (fresh) {
    known->second =
        number(joined::followed_by(deeds_[deed].actions, pipeline_.rules().rules[rule].actions));
  }
  return known->second;
}

Residue Follower::follow(const Cube& cube, std::uint32_t deed, std::size_t end) {
  known_ = both(cube, entrance_);
  end_ = end;
  Residue residue;
  if (!expand({pipeline_.any(), deed, {}}, residue)) residue.clear();
  return residue;
}

const std::vector<std::uint32_t>& Follower::rows_met(std::uint32_t table, const Cube& set) {
  const auto [known, fresh] = rows_met_.try_emplace({table, set});
  std::vector<std::uint32_t>& rows = known->second;
  if (fresh) {
    pipeline_.for_each_behind(table, pipeline_.any(), entrance_, set,
                              [&](std::uint32_t row, const auto&, const auto&) {
                                if (row != kNoRow) rows.push_back(row);
                              });
    ranks_met_.insert(ranks_.at(table));
  }
  return rows;
}

bool Follower::expand(const Rest& rest, Residue& residue) {
  const Deeds::Deed& deed = deeds_[rest.deed];
  if (deed.next && ranks_.at(*deed.next) < end_) {
    const std::uint32_t table = *deed.next;
    const std::size_t before = residue.size();
    bool written = true;
    pipeline_.for_each_behind(
        table, rows_met(table, deed.set), rest.cube, both(rest.cube, known_), deed.set,
        [&](std::uint32_t row, const std::vector<Word>& value, const std::vector<Word>& mask) {
          if (!written) return;
          if (row == kNoRow) {
            written = deed.may_stop;
            if (written) residue.push_back({{value, mask}, rest.deed, rest.rules});
            return;
          }
          const std::uint32_t rule = pipeline_.tables().at(table)[row];
          Rest next{{value, mask}, deeds_.followed_by(rest.deed, rule), rest.rules};
          next.rules.push_back(rule);
          written = residue.size() < kMostRests && expand(next, residue);
        });
    if (written) return true;
    residue.resize(before);
  }
  if (deed.may_stop) residue.push_back(rest);
  return deed.may_stop;
}

std::vector<std::size_t> needed(const Residue& residue) {
  std::vector<std::size_t> places;  // the last first
  for (std::size_t i = residue.size(); i-- > 0;) {
    bool needless = false;
    for (std::size_t p = places.size(); p-- > 0 && !needless;) {
      const Rest& behind = residue[places[p]];
      if (!meets(residue[i].cube, behind.cube)) continue;
      if (residue[i].deed != behind.deed) break;
      needless = holds(behind.cube, residue[i].cube);
    }
    if (!needless) places.push_back(i);
  }
  std::ranges::reverse(places);
  return places;
}

bool alike(const Residue& a, const Residue& b) {
  return std::ranges::equal(a, b, [](const Rest& one, const Rest& other) {
    return one.deed == other.deed && one.cube == other.cube;
  });
}

}  // namespace greynic::optimizer::joined
