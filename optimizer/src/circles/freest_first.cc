#include "src/circles/freest_first.h"

#include <algorithm>

namespace greynic::optimizer::circles {
namespace {

/// Splits the groups of one circle until an order exists: groups that nothing holds back leave;
/// when none is left, the one with the largest share of free rows gives those up as a group of its
/// own.
class CircleBreaker {
 public:
  CircleBreaker(const Problem& problem, const std::vector<Group>& circle, const BitMatrix& before)
      : problem_(problem), before_(before) {
    for (const Group& group : circle) rows_.push_back(group.rows);
    blockers_.assign(problem.rows.size(), 0);
    for (std::size_t a = 0; a < circle.size(); ++a) {
      for (std::size_t b = 0; b < circle.size(); ++b) block(a, rows_[a], b, +1);
    }
  }

  std::vector<std::vector<std::uint32_t>> run() {
    std::vector<std::vector<std::uint32_t>> parts;
    std::size_t left = rows_.size();
    while (left > 0) {
      std::size_t best = rows_.size();
      double best_share = -1.0;
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].empty()) continue;
        const double share = free_share(i);
        if (share > best_share) {
          best = i;
          best_share = share;
        }
      }
      parts.push_back(release(best));
      if (rows_[best].empty()) --left;
    }
    return parts;
  }

 private:
  void block(std::size_t a, const std::vector<std::uint32_t>& rows_of_a, std::size_t b, int step) {
    if (a == b || !before_.test(a, b)) return;
    count_blocked(problem_, rows_of_a, rows_[b], step, blockers_);
  }

  [[nodiscard]] double free_share(std::size_t i) const {
    const auto free = std::count_if(rows_[i].begin(), rows_[i].end(),
                                    [&](std::uint32_t row) { return blockers_[row] == 0; });
    return static_cast<double>(free) / static_cast<double>(rows_[i].size());
  }

  std::vector<std::uint32_t> release(std::size_t i) {
    std::vector<std::uint32_t> free;
    std::vector<std::uint32_t> rest;
    for (const std::uint32_t row : rows_[i]) (blockers_[row] == 0 ? free : rest).push_back(row);
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      block(i, rows_[i], b, -1);
      block(i, rest, b, +1);
    }
    rows_[i] = std::move(rest);
    return free;
  }

  const Problem& problem_;
  const BitMatrix& before_;
  std::vector<std::vector<std::uint32_t>> rows_;  ///< still held, for each member of the circle
  std::vector<std::int32_t> blockers_;  ///< by row: groups of the circle that hold it back
};

}  // namespace

std::vector<std::vector<std::uint32_t>> freest_first(const Problem& problem,
                                                     const std::vector<Group>& circle,
                                                     const BitMatrix& before) {
  return CircleBreaker(problem, circle, before).run();
}

}  // namespace greynic::optimizer::circles
