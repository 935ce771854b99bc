#include "row_order.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "engine_bits.h"

namespace greynic::testgen {
namespace {

using Rows = std::vector<std::vector<int>>;

/// Rows times triples of a row; beyond, triples take longer than they are worth.
constexpr double kMostTriples = 5e7;

/// What a row says, by numbers: its levels, or the conditions that could be part of a cause and
/// hold in it. A level of an ordered parameter meets "at least" for itself and all below, "at most"
/// for itself and all above.
std::vector<std::vector<std::uint32_t>> numbered(const Rows& rows, const std::vector<bool>& ordered,
                                                 std::uint32_t& count) {
  const std::size_t parameters = rows.front().size();
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> levels(parameters, 0);
  for (std::size_t p = 0; p < parameters; ++p) {
    for (const auto& row : rows)
      levels[p] = std::max(levels[p], static_cast<std::uint32_t>(row[p] + 1));
    first.push_back(count);
    count += ordered[p] ? 2 * levels[p] : levels[p];
  }
  std::vector<std::vector<std::uint32_t>> out(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t p = 0; p < parameters; ++p) {
      if (rows[r][p] < 0) continue;
      const auto level = static_cast<std::uint32_t>(rows[r][p]);
      if (!ordered[p]) {
        out[r].push_back(first[p] + level);
        continue;
      }
      for (std::uint32_t l = 0; l <= level; ++l) out[r].push_back(first[p] + l);
      for (std::uint32_t l = level; l < levels[p]; ++l) out[r].push_back(first[p] + levels[p] + l);
    }
  }
  return out;
}

/// Which pairs or triples of these numbers some chosen row has.
class Seen {
 public:
  Seen(std::uint32_t count, bool triples) : count_(count), triples_(triples) {
    if (!triples) pairs_.assign((std::size_t{count} * count + 63) / 64, 0);
  }

  /// How many of the row's are new; takes them in if told so.
  std::size_t fresh(const std::vector<std::uint32_t>& row, bool take) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::uint64_t pair = std::uint64_t{row[i]} * count_ + row[j];
        if (!triples_) {
          if (test_bit(pairs_.data(), pair)) continue;
          ++count;
          if (take) set_bit(pairs_.data(), pair);
          continue;
        }
        for (std::size_t k = 0; k < j; ++k) {
          const std::uint64_t triple = pair * count_ + row[k];
          count += take ? triple_set_.insert(triple).second : !triple_set_.contains(triple);
        }
      }
    }
    return count;
  }

 private:
  std::uint64_t count_;
  bool triples_;
  Words pairs_;
  std::unordered_set<std::uint64_t> triple_set_;
};

}  // namespace

void put_new_pairs_first(Rows& rows, const std::vector<bool>& ordered, std::size_t fixed) {
  if (rows.size() <= fixed + 1) return;
  const auto width = static_cast<double>(rows.front().size());
  const bool triples = static_cast<double>(rows.size()) * width * width * width / 6 < kMostTriples;
  std::vector<std::size_t> order;
  std::vector<std::size_t> left;
  for (std::size_t r = 0; r < rows.size(); ++r) (r < fixed ? order : left).push_back(r);
  for (const bool by_triples : {false, true}) {
    if (by_triples && !triples) break;
    std::uint32_t count = 0;
    const auto said =
        numbered(rows, by_triples ? std::vector<bool>(ordered.size(), false) : ordered, count);
    Seen seen(count, by_triples);
    for (const std::size_t r : order) seen.fresh(said[r], true);
    // What a row adds only ever falls, so a row that still leads after a fresh count is the best.
    // Among equals the first stays first.
    struct Entry {
      std::size_t fresh;
      std::size_t row;
      bool operator<(const Entry& other) const {
        return fresh != other.fresh ? fresh < other.fresh : row > other.row;
      }
    };
    std::priority_queue<Entry> queue;
    for (const std::size_t r : left) queue.push({seen.fresh(said[r], false), r});
    left.clear();
    while (!queue.empty()) {
      Entry top = queue.top();
      queue.pop();
      const std::size_t now = seen.fresh(said[top.row], false);
      if (now < top.fresh && !queue.empty()) {
        queue.push({now, top.row});
        continue;
      }
      if (now == 0) {
        left.push_back(top.row);
        continue;
      }
      seen.fresh(said[top.row], true);
      order.push_back(top.row);
    }
    std::sort(left.begin(), left.end());
  }
  order.insert(order.end(), left.begin(), left.end());
  Rows sorted;
  for (const std::size_t r : order) sorted.push_back(std::move(rows[r]));
  rows = std::move(sorted);
}

}  // namespace greynic::testgen
