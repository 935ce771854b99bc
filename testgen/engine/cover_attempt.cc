#include "engine/cover_attempt.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/algebraic.h"
#include "engine/cover_forecast.h"
#include "engine/row_builder.h"
#include "engine/row_rules.h"

namespace greynic::testgen {
namespace {

/// Without a deadline the local search goes on until this much work brought no smaller array. More
/// work buys little: ten times as much takes off less than one row in a hundred
/// (docs/testgen/engine.md).
constexpr std::uint64_t kPatience = 20'000;
constexpr std::uint64_t kPatiencePerCell = 25;
/// Above pairs a step costs more and the array is larger, so patience is dearer.
constexpr std::uint64_t kPatiencePerCellAbovePairs = 4;
/// Without a deadline no search does more than this, which is some seconds, however well it gets
/// on: an array of thousands of rows and strength 6 would keep it for hours.
constexpr std::uint64_t kMostWork = 2'000'000'000;
/// Parameters tried as the first one in a lower bound above pairs.
constexpr std::size_t kBreadth = 4;
constexpr std::size_t kThoroughBreadth = 64;
/// An algebraic start with more rows than this is not worth its time.
constexpr std::size_t kMostAlgebraicRows = 4096;

/// Covered parameters that no constraint touches and that have a choice, with their wanted levels.
struct FreePart {
  std::vector<std::vector<Value>> levels;
  std::uint32_t most_levels = 0;
};

/// Of each value; empty when no level costs anything.
std::vector<double> costs_of(const CoverTask& task) {
  std::vector<double> costs;
  for (Value v = 0; v < task.index.values(); ++v) {
    const auto& levels = task.space.parameters[task.index.parameter(v)].level_costs;
    if (levels.empty()) continue;
    costs.resize(task.index.values(), 0.0);
    costs[v] = levels[task.index.level(v)];
  }
  return costs;
}

FreePart free_part(const CoverTask& task, const Validity& validity) {
  FreePart part;
  for (std::uint32_t p = 0; p < task.index.parameters(); ++p) {
    if (!validity.free(p)) continue;
    std::vector<Value> levels;
    for (Value v = task.index.first(p); v < task.index.first(p) + task.index.level_count(p); ++v) {
      if (test_bit(task.wanted.data(), v)) levels.push_back(v);
    }
    if (levels.size() < 2) continue;
    part.most_levels = std::max(part.most_levels, static_cast<std::uint32_t>(levels.size()));
    part.levels.push_back(std::move(levels));
  }
  return part;
}

}  // namespace

CoverAttempt::CoverAttempt(const CoverTask& task, std::uint64_t seed, bool start_algebraic,
                           bool reports, bool frugal)
    : task_(task),
      validity_(task.space, task.index),
      random_(seed),
      start_algebraic_(start_algebraic),
      reports_(reports),
      frugal_(frugal) {
  for (const Layer& layer : task.layers) {
    const double begun = task.seconds();
    const auto in_time = [&](double share) {
      const double deadline = task.options.deadline_seconds;
      if (deadline <= 0) return true;
      seconds_to_lay_out_ = begun + (task.seconds() - begun) / share;
      const bool telling = share > 0.05;
      laid_out_ = !task.late() && !(telling && seconds_to_lay_out_ > deadline);
      return laid_out_;
    };
    open_.emplace_back(task.index, layer.strength, layer.parameters, task.compatible, in_time);
    if (!laid_out_) return;
    tuples_ += open_.back().open();
  }
}

bool CoverAttempt::has_algebraic_start(const CoverTask& task, const Validity& validity) {
  if (task.options.strength != 2 || !task.seeds.empty() || !task.already.empty()) return false;
  const FreePart part = free_part(task, validity);
  // With few columns chance does as well; with mixed levels the field's size is wasted.
  return part.levels.size() > 3 &&
         !algebraic_array(part.levels.size(), part.most_levels, kMostAlgebraicRows).empty();
}

void CoverAttempt::cover(const ValueRow& row) {
  for (OpenTuples& layer : open_) covered_ += layer.cover(row);
}

void CoverAttempt::report(double share, std::size_t rows) const {
  if (reports_ && task_.options.progress) task_.options.progress(share, rows);
}

void CoverAttempt::start_from_algebra() {
  const FreePart part = free_part(task_, validity_);
  RowBuilder builder(task_.space, task_.index, validity_, open_);
  for (const auto& symbols :
       algebraic_array(part.levels.size(), part.most_levels, kMostAlgebraicRows)) {
    if (task_.late() && !rows_.empty()) return;
    std::vector<Value> must;
    for (std::size_t c = 0; c < part.levels.size(); ++c) {
      // A column with fewer levels than symbols has the surplus ones free: greed fills them.
      if (symbols[c] < part.levels[c].size()) must.push_back(part.levels[c][symbols[c]]);
    }
    ValueRow row = builder.build(must, random_);
    if (row.empty()) continue;
    cover(row);
    rows_.push_back(std::move(row));
  }
}

void CoverAttempt::fill() {
  RowBuilder builder(task_.space, task_.index, validity_, open_);
  if (frugal_) builder.avoid(costs_of(task_));
  for (OpenTuples& layer : open_) {
    while (layer.open() > 0) {
      // An array without a row helps nobody, so the first one is always made.
      if (task_.late() && !rows_.empty()) return;
      const auto tuple = layer.any_open(static_cast<std::uint32_t>(random_.next()));
      ValueRow row = builder.build(tuple, random_);
      if (row.empty()) {
        layer.remove(tuple);
        infeasible_.push_back(tuple);
        validity_.forbid(tuple);
        continue;
      }
      cover(row);
      rows_.push_back(std::move(row));
      report(static_cast<double>(covered_) / static_cast<double>(tuples_), rows_.size());
    }
  }
  full_ = true;
}

void CoverAttempt::find_bound() {
  for (const Layer& layer : task_.layers) {
    std::size_t breadth = task_.options.report_lower_bound ? kThoroughBreadth : kBreadth;
    const double once = static_cast<double>(rows_.size() * layer.parameters.size()) *
                        static_cast<double>(task_.index.words());
    const auto all = [&] {
      return once * std::pow(static_cast<double>(breadth), std::max(0, layer.strength - 2));
    };
    while (breadth > 1 && !task_.affords(all())) --breadth;
    LowerBound bound = lower_bound(task_.index, layer, task_.wanted, rows_, task_.already, breadth);
    if (bound.rows > bound_.rows) bound_ = std::move(bound);
  }
}

/// Steps to set a local search up and to take one row away: what a deadline cannot break off.
double CoverAttempt::steps_of_a_search() const {
  double steps = 0;
  const auto rows = static_cast<double>(rows_.size() + task_.already.size());
  for (const Layer& layer : task_.layers) {
    const auto parameters = static_cast<double>(layer.parameters.size());
    double prefixes = 1;
    for (int i = 0; i + 1 < layer.strength; ++i) prefixes *= (parameters - i) / (i + 1);
    steps += prefixes * rows * static_cast<double>(task_.index.words());
    // Above triples a value's tuples are gone through one by one, each with the rows that hold it.
    if (layer.strength > 3) steps += prefixes * parameters / layer.strength * (rows / 64);
  }
  return steps;
}

void CoverAttempt::improve(SharedBest& shared) {
  if (!task_.affords(steps_of_a_search())) return;
  const std::size_t given = task_.already.size();
  const std::size_t enough = given + std::max(bound_.rows, task_.seeds.size());
  const RowRules rules(task_.space, task_.index);
  const bool timed = task_.options.deadline_seconds > 0;
  const std::uint64_t enough_work = patience();
  while (!task_.late()) {
    std::vector<ValueRow> all = task_.already;
    all.insert(all.end(), rows_.begin(), rows_.end());
    LocalSearch search(task_.index, task_.layers, task_.wanted, rules, validity_, std::move(all),
                       given + task_.seeds.size(), random_.next());
    std::size_t fewest = search.best().size();
    std::uint64_t found_at = 0;
    bool taken_over = false;
    const auto keep = [&] {
      rows_.assign(search.best().begin() + static_cast<std::ptrdiff_t>(given), search.best().end());
    };
    search.run(enough, [&] {
      if (search.best().size() < fewest) {
        fewest = search.best().size();
        found_at = search.work();
        if (timed) {
          keep();
          shared.offer(rows_);
          report(task_.seconds() / task_.options.deadline_seconds, rows_.size());
        }
      }
      if (!timed) return search.work() - found_at > enough_work || search.work() > kMostWork;
      taken_over = shared.size() != 0 && given + shared.size() < fewest;
      return taken_over || task_.late();
    });
    keep();
    search_work_ += static_cast<double>(search.work());
    if (!taken_over) break;
    rows_ = shared.rows();
  }
}

std::uint64_t CoverAttempt::patience() const {
  int strength = 0;
  for (const Layer& layer : task_.layers) strength = std::max(strength, layer.strength);
  const std::uint64_t cells = rows_.size() * task_.index.parameters();
  const std::uint64_t work =
      kPatience + (strength > 2 ? kPatiencePerCellAbovePairs : kPatiencePerCell) * cells;
  // Above triples a tuple looked at counts once for each few words of the set of rows.
  const std::uint64_t usual = strength > 3 ? work * (1 + rows_.size() / 256) : work;
  return static_cast<std::uint64_t>(task_.options.patience * static_cast<double>(usual));
}

/// The same where levels have costs: rows are taken away and cells made cheaper in turn, and only
/// what lowers the sum over all rows (or, at the same sum, their number) counts.
void CoverAttempt::save_costs() {
  if (!task_.affords(steps_of_a_search())) return;
  const std::vector<double> cost = costs_of(task_);
  const std::size_t given = task_.already.size();
  const RowRules rules(task_.space, task_.index);
  const bool timed = task_.options.deadline_seconds > 0;
  const std::uint64_t enough_work = patience();
  do {
    for (const bool by_rows : {true, false}) {
      std::vector<ValueRow> all = task_.already;
      all.insert(all.end(), rows_.begin(), rows_.end());
      LocalSearch search(task_.index, task_.layers, task_.wanted, rules, validity_, std::move(all),
                         given + task_.seeds.size(), random_.next());
      search.weigh(cost);
      std::uint64_t improvements = 0;
      std::uint64_t found_at = 0;
      const auto stop = [&] {
        if (search.improvements() != improvements) {
          improvements = search.improvements();
          found_at = search.work();
        }
        return task_.late() || search.work() - found_at > enough_work;
      };
      if (by_rows) {
        search.run(0, stop);
      } else {
        search.economise(stop);
      }
      search_work_ += static_cast<double>(search.work());
      rows_.assign(search.best().begin() + static_cast<std::ptrdiff_t>(given), search.best().end());
    }
    report(task_.seconds() / task_.options.deadline_seconds, rows_.size());
  } while (timed && !task_.late());
}

/// Where levels have a cost or a weight, cells that cover nothing alone take the cheapest, then the
/// weightiest one.
void CoverAttempt::settle() {
  const auto& parameters = task_.space.parameters;
  if (std::none_of(parameters.begin(), parameters.end(), [](const Parameter& p) {
        return !p.level_costs.empty() || !p.level_weights.empty();
      })) {
    return;
  }
  if (!task_.affords(steps_of_a_search())) return;
  const auto rank = [&](Value v) {
    const Parameter& p = parameters[task_.index.parameter(v)];
    const std::uint16_t level = task_.index.level(v);
    return std::pair(p.level_costs.empty() ? 0.0 : p.level_costs[level],
                     p.level_weights.empty() ? 0.0 : -p.level_weights[level]);
  };
  const RowRules rules(task_.space, task_.index);
  std::vector<ValueRow> all = task_.already;
  all.insert(all.end(), rows_.begin(), rows_.end());
  LocalSearch search(task_.index, task_.layers, task_.wanted, rules, validity_, std::move(all),
                     task_.already.size() + task_.seeds.size(), random_.next());
  search.settle([&](Value w, Value v) { return rank(w) < rank(v); });
  rows_.assign(search.best().begin() + static_cast<std::ptrdiff_t>(task_.already.size()),
               search.best().end());
}

/// A row that no tuple needed may have been settled, or made cheaper, into the same as another.
void CoverAttempt::drop_repeated() {
  std::set<ValueRow> seen;
  const auto fresh = [&](const ValueRow& row) {
    ValueRow covered;
    for (std::uint32_t p = 0; p < row.size(); ++p) {
      if (task_.space.parameters[p].covered) covered.push_back(row[p]);
    }
    return seen.insert(std::move(covered)).second;
  };
  for (const ValueRow& row : task_.already) fresh(row);
  std::size_t kept = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!fresh(rows_[r]) && r >= task_.seeds.size()) continue;
    if (kept != r) rows_[kept] = std::move(rows_[r]);
    ++kept;
  }
  rows_.resize(kept);
}

double CoverAttempt::steps() const {
  double steps = search_work_ * steps_of_search_work(task_.layers);
  for (const Layer& layer : task_.layers) {
    steps += steps_to_lay_out(task_.index, layer) +
             static_cast<double>(built_) * steps_of_a_row(task_.index, layer);
  }
  return steps;
}

void CoverAttempt::run(SharedBest& shared) {
  for (const ValueRow& row : task_.already) cover(row);
  for (const ValueRow& row : task_.seeds) {
    cover(row);
    rows_.push_back(row);
  }
  if (start_algebraic_) start_from_algebra();
  fill();
  built_ = rows_.size();
  open_.clear();  // the search needs the room
  if (!full_) return;
  find_bound();
  if (rows_.empty()) return;  // nothing can be covered, or all is
  if (costs_of(task_).empty()) {
    improve(shared);
  } else {
    save_costs();
  }
  settle();
  drop_repeated();
  shared.offer(rows_);
}

}  // namespace greynic::testgen
