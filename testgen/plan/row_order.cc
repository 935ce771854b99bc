#include "plan/row_order.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace greynic::testgen {
namespace {

/// Changes one level after the other to the one with which the row meets most, until none helps.
void climb(LevelRow& row, const std::vector<Axis>& axes, LikelyCauses& causes,
           const std::function<bool(const LevelRow&)>& valid) {
  double most = causes.fresh(row);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t p = 0; p < row.size(); ++p) {
      if (row[p] < 0) continue;
      int best = row[p];
      for (int level = 0; level < static_cast<int>(axes[p].levels); ++level) {
        row[p] = level;
        const double now = causes.fresh(row);
        if (now <= most || !valid(row)) continue;
        most = now;
        best = level;
        better = true;
      }
      row[p] = best;
    }
  }
}

}  // namespace

std::vector<LevelRow> front_rows(const std::vector<LevelRow>& pool,
                                 const std::vector<LevelRow>& before, const std::vector<Axis>& axes,
                                 std::size_t count,
                                 const std::function<bool(const LevelRow&)>& valid) {
  std::vector<LevelRow> front;
  LikelyCauses causes(Conditions(axes), count * pool.size());
  if (!causes.triples() || pool.empty()) return front;
  for (const LevelRow& row : before) causes.take(row);
  while (front.size() < count) {
    std::vector<double> fresh;
    for (const LevelRow& row : pool) fresh.push_back(causes.fresh(row));
    const auto best = std::max_element(fresh.begin(), fresh.end());
    LevelRow row = pool[static_cast<std::size_t>(best - fresh.begin())];
    climb(row, axes, causes, valid);
    if (causes.fresh(row) == 0.0) break;
    causes.take(row);
    front.push_back(std::move(row));
  }
  return front;
}

void put_likely_causes_first(std::vector<LevelRow>& rows, const std::vector<Axis>& axes,
                             std::size_t fixed) {
  if (rows.size() <= fixed + 1) return;
  std::vector<std::size_t> order(fixed);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> left(rows.size() - fixed);
  std::iota(left.begin(), left.end(), fixed);
  // Rows that meet no new "at least" or "at most" may still meet new levels.
  std::vector<Axis> levels = axes;
  for (Axis& axis : levels) axis.ordered = false;
  for (const std::vector<Axis>& by : {axes, levels}) {
    LikelyCauses causes(Conditions(by), rows.size());
    for (const std::size_t r : order) causes.take(rows[r]);
    // What a row adds only ever falls, so a row that still leads after a fresh count is the best.
    // Among equals the first stays first.
    struct Entry {
      double fresh;
      std::size_t row;
      bool operator<(const Entry& other) const {
        return fresh != other.fresh ? fresh < other.fresh : row > other.row;
      }
    };
    std::priority_queue<Entry> queue;
    for (const std::size_t r : left) queue.push({causes.fresh(rows[r]), r});
    left.clear();
    while (!queue.empty()) {
      const Entry top = queue.top();
      queue.pop();
      const double now = causes.fresh(rows[top.row]);
      if (now < top.fresh && !queue.empty()) {
        queue.push({now, top.row});
        continue;
      }
      if (now == 0.0) {
        left.push_back(top.row);
        continue;
      }
      causes.take(rows[top.row]);
      order.push_back(top.row);
    }
    std::sort(left.begin(), left.end());
  }
  order.insert(order.end(), left.begin(), left.end());
  std::vector<LevelRow> sorted;
  for (const std::size_t r : order) sorted.push_back(std::move(rows[r]));
  rows = std::move(sorted);
}

}  // namespace greynic::testgen
