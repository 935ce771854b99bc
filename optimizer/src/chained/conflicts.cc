/// Conflicts: what must come before what, found by a tree of bits, and handed down to parts of a region.

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "src/chained/units.h"

namespace greynic::optimizer::chained {
namespace {

/// Of rows with too many, so that parts of a region seldom have to look again.
std::size_t most_listed(std::size_t most) { return 2 * most; }

/// Units by their bits: at each branch those with 0, with 1, and those that do not look.
class ConflictFinder {
 public:
  ConflictFinder(const Units& units, const UnitRows& rows, std::size_t most)
      : units_(units), rows_(rows), most_(most) {
    std::vector<std::uint32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0U);
    std::vector<Word> decided(rows.hull.words(), 0);
    root_ = build(std::move(all), decided);
  }

  /// Lists the rows that must come before one, ascending; whether there are more than listed.
  bool find(std::uint32_t row, std::vector<std::uint32_t>& found) const {
    search(*root_, row, found, most_listed(most_));
    std::sort(found.begin(), found.end());
    return found.size() > most_;
  }

 private:
  struct Branch {
    int column = -1;
    std::uint32_t first = kNoRow;
    std::vector<std::uint32_t> members;
    std::array<std::unique_ptr<Branch>, 3> below;
  };

  std::unique_ptr<Branch> build(std::vector<std::uint32_t> members, std::vector<Word>& decided) {
    auto branch = std::make_unique<Branch>();
    if (members.empty()) return branch;
    branch->first = members.front();
    constexpr std::size_t kFew = 8;
    const Ternaries& hull = rows_.hull;
    if (members.size() > kFew) branch->column = best_split(hull, members, decided);
    if (branch->column < 0) {
      branch->members = std::move(members);
      return branch;
    }
    const auto w = static_cast<std::size_t>(branch->column) / 64;
    const Word bit = Word{1} << branch->column % 64;
    std::array<std::vector<std::uint32_t>, 3> side;
    for (const std::uint32_t unit : members) {
      const bool looks = (hull.mask[unit][w] & bit) != 0;
      side[!looks ? 2 : (hull.value[unit][w] & bit) != 0 ? 1 : 0].push_back(unit);
    }
    members = {};
    decided[w] |= bit;
    for (std::size_t i = 0; i < 3; ++i) branch->below[i] = build(std::move(side[i]), decided);
    decided[w] &= ~bit;
    return branch;
  }

  void search(const Branch& branch, std::uint32_t unit, std::vector<std::uint32_t>& found,
              std::size_t most) const {
    if (branch.first >= unit || found.size() > most) return;
    if (branch.column < 0) {
      for (const std::uint32_t other : branch.members) {
        if (other >= unit || found.size() > most) return;
        if (units_.effect[rows_.unit[other]] != units_.effect[rows_.unit[unit]] &&
            units_.overlap(rows_, other, rows_, unit)) {
          found.push_back(other);
        }
      }
      return;
    }
    const auto w = static_cast<std::size_t>(branch.column) / 64;
    const Word bit = Word{1} << branch.column % 64;
    const bool looks = (rows_.hull.mask[unit][w] & bit) != 0;
    const bool one = (rows_.hull.value[unit][w] & bit) != 0;
    search(*branch.below[2], unit, found, most);
    if (!looks || !one) search(*branch.below[0], unit, found, most);
    if (!looks || one) search(*branch.below[1], unit, found, most);
  }

  const Units& units_;
  const UnitRows& rows_;
  std::size_t most_;
  std::unique_ptr<Branch> root_;
};

}  // namespace

void Conflicts::cut_off(std::size_t rows) {
  if (end.size() <= rows) return;
  end.resize(rows);
  many.resize(rows);
  some.resize(rows);
  listed.resize(rows == 0 ? 0 : end.back());
}

Conflicts conflicts_of(const Units& units, const UnitRows& rows, std::size_t most) {
  const ConflictFinder finder(units, rows, most);
  Conflicts result;
  result.most = most;
  std::vector<std::vector<std::uint32_t>> before(rows.size());
  std::size_t count = 0;
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    result.many.push_back(finder.find(row, before[row]) ? 1 : 0);
    result.some.push_back(before[row].size() > most_listed(most) ? 1 : 0);
    result.end.push_back(count += before[row].size());
  }
  result.listed.reserve(count);
  for (auto& of_row : before) {  // freed one by one: there may be many
    result.listed.insert(result.listed.end(), of_row.begin(), of_row.end());
    of_row = {};
  }
  return result;
}

Conflicts conflicts_within(const Units& units, const Conflicts& among, const UnitRows& outer,
                           const UnitRows& inner, const std::vector<std::uint32_t>& from,
                           Meeting meeting, std::vector<std::uint32_t>& row_inside) {
  Conflicts result;
  result.most = among.most;
  result.end.resize(inner.size());
  result.many.assign(inner.size(), 0);
  result.some.assign(inner.size(), 0);
  std::unique_ptr<ConflictFinder> finder;
  std::vector<std::uint32_t> found;
  // A finder takes its time to be made: few rows are looked for without.
  constexpr std::size_t kSmall = 128;
  std::size_t looked_through = 0;
  const auto find_again = [&](std::uint32_t row) {
    constexpr std::size_t kFew = 8;
    if (inner.size() > kSmall && ++looked_through > kFew) {
      if (!finder) finder = std::make_unique<ConflictFinder>(units, inner, among.most);
      return finder->find(row, found);
    }
    for (std::uint32_t other = 0; other < row && found.size() <= most_listed(among.most); ++other) {
      const bool same = units.effect[inner.unit[other]] == units.effect[inner.unit[row]];
      if (!same && units.overlap(inner, other, inner, row)) found.push_back(other);
    }
    return found.size() > among.most;
  };
  constexpr PortIds kNoSets{};
  const auto meet = [&](std::uint32_t listed, std::uint32_t other, std::uint32_t row) {
    const bool sure = meeting == Meeting::kSure ||
                      (meeting == Meeting::kOfPorts && outer.ports[listed] == kNoSets &&
                       outer.ports[from[row]] == kNoSets);
    return sure || units.overlap(inner, other, inner, row);
  };
  for (std::uint32_t row = 0; row < inner.size(); ++row) {
    row_inside[from[row]] = row;
    const std::size_t begin = result.listed.size();
    for (const std::uint32_t listed : among.before(from[row])) {
      const std::uint32_t other = row_inside[listed];
      if (other != kNoRow && meet(listed, other, row)) result.listed.push_back(other);
    }
    if (among.many[from[row]] != 0) {
      bool many = result.listed.size() - begin > among.most;
      bool some = among.some[from[row]] != 0;
      if (!many && some) {
        found.clear();
        many = find_again(row);
        some = found.size() > most_listed(among.most);
        result.listed.resize(begin);
        result.listed.insert(result.listed.end(), found.begin(), found.end());
      }
      result.many[row] = many ? 1 : 0;
      result.some[row] = some ? 1 : 0;
    }
    result.end[row] = result.listed.size();
  }
  for (std::uint32_t row = 0; row < inner.size(); ++row) row_inside[from[row]] = kNoRow;
  return result;
}

}  // namespace greynic::optimizer::chained
