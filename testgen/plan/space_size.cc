#include "plan/space_size.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "compile/normal_form.h"
#include "greynic/testgen/model_cover.h"
#include "validity/space_solver.h"

namespace greynic::testgen {

using language::CoverModel;

namespace {

/// Of samples; plans of a seed hang on its stream.
using SampleRandom = std::mt19937_64;

constexpr std::size_t kFewestSamples = 10;
constexpr std::size_t kMostSamples = 400;

/// Groups of the model's parameters that clauses join, directly or through helpers.
std::vector<std::vector<std::uint32_t>> joined_parameters(const CoverModel& model,
                                                          const Space& space) {
  std::vector<std::uint32_t> leader(space.parameters.size());
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&](std::uint32_t p) {
    while (leader[p] != p) p = leader[p] = leader[leader[p]];
    return p;
  };
  for (const Clause& clause : space.clauses) {
    for (const Literal& literal : clause) {
      leader[find(literal.parameter)] = find(clause[0].parameter);
    }
  }
  std::vector<std::vector<std::uint32_t>> groups(space.parameters.size());
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) groups[find(p)].push_back(p);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

/// Rows over some parameters that the rest of the space can be completed to.
class RowWalker {
 public:
  RowWalker(const Space& space, SpaceSolver& solver, std::vector<std::uint32_t> parameters)
      : space_(space), solver_(solver), parameters_(std::move(parameters)) {}

  /// Calls `visit` with the levels of the parameters, in order; it returns false to stop.
  bool each(const std::function<bool(const std::vector<Literal>&)>& visit) {
    path_.clear();
    const auto row = solver_.solve();
    return !row || descend(*row, visit);
  }

  /// One random way to a leaf: log10 of Knuth's estimate of the number of leaves.
  double random_way(SampleRandom& random) {
    if (possible_.empty()) find_possible_levels();
    path_.clear();
    double log_count = 0.0;
    std::optional<Row> witness = solver_.solve();
    if (!witness) return -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::uint32_t p = parameters_[i];
      std::vector<std::pair<std::uint16_t, Row>> open;
      for (const std::uint16_t level : possible_[i]) {
        if ((*witness)[p] == level) {
          open.emplace_back(level, *witness);
          continue;
        }
        path_.push_back({p, level, true});
        if (auto row = solver_.solve(path_)) open.emplace_back(level, std::move(*row));
        path_.pop_back();
      }
      log_count += std::log10(static_cast<double>(open.size()));
      auto& [level, row] = open[random() % open.size()];
      path_.push_back({p, level, true});
      witness = std::move(row);
    }
    return log_count;
  }

 private:
  /// `witness` is a valid row that extends the path, so its levels need no question.
  bool descend(const Row& witness, const std::function<bool(const std::vector<Literal>&)>& visit) {
    if (path_.size() == parameters_.size()) return visit(path_);
    const std::uint32_t p = parameters_[path_.size()];
    for (std::uint16_t level = 0; level < space_.parameters[p].level_count; ++level) {
      path_.push_back({p, level, true});
      bool go_on = true;
      if (witness[p] == level) {
        go_on = descend(witness, visit);
      } else if (const auto row = solver_.solve(path_)) {
        go_on = descend(*row, visit);
      }
      path_.pop_back();
      if (!go_on) return false;
    }
    return true;
  }

  /// Levels that some valid row has; all others need no question on any way.
  void find_possible_levels() {
    for (const std::uint32_t p : parameters_) {
      auto& levels = possible_.emplace_back();
      for (std::uint16_t level = 0; level < space_.parameters[p].level_count; ++level) {
        const std::vector<Literal> alone = {{p, level, true}};
        if (solver_.solve(alone)) levels.push_back(level);
      }
    }
  }

  const Space& space_;
  SpaceSolver& solver_;
  std::vector<std::uint32_t> parameters_;
  std::vector<Literal> path_;
  std::vector<std::vector<std::uint16_t>> possible_;
};

/// Mean of numbers given by their logarithms, with a 95 % interval from the spread of the samples.
SpaceSize mean_of_logs(const std::vector<double>& logs) {
  const double top = *std::max_element(logs.begin(), logs.end());
  SpaceSize out;
  out.exact = false;
  if (!std::isfinite(top)) {
    out.log10 = out.log10_low = out.log10_high = top;
    out.exact = true;
    return out;
  }
  double sum = 0.0;
  double squares = 0.0;
  for (const double log : logs) {
    const double scaled = std::pow(10.0, log - top);
    sum += scaled;
    squares += scaled * scaled;
  }
  const auto n = static_cast<double>(logs.size());
  const double mean = sum / n;
  const double variance = std::max(0.0, squares / n - mean * mean) / std::max(1.0, n - 1.0);
  const double half = 1.96 * std::sqrt(variance);
  out.log10 = top + std::log10(mean);
  // Below, the interval is taken on the scale of logarithms, where it cannot leave what is
  // possible.
  out.log10_low = out.log10 - std::log10(1.0 + half / mean);
  out.log10_high = top + std::log10(mean + half);
  return out;
}

double log_product(const Space& space, const std::vector<std::uint32_t>& parameters) {
  double log = 0.0;
  for (const std::uint32_t p : parameters) {
    log += std::log10(static_cast<double>(space.parameters[p].level_count));
  }
  return log;
}

}  // namespace

SpaceSize raw_size(const CoverModel& model) {
  SpaceSize out;
  for (const language::ModelParameter& parameter : model.parameters) {
    out.log10 += std::log10(static_cast<double>(parameter.levels.size()));
  }
  out.log10_low = out.log10_high = out.log10;
  return out;
}

SpaceSize valid_size(const CoverModel& model, const Space& space, const CountOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto groups = joined_parameters(model, space);
  SpaceSolver solver(space);
  SampleRandom random(options.seed);
  SpaceSize total;
  double low_spread = 0.0;
  double high_spread = 0.0;
  const auto sampled_groups = std::count_if(groups.begin(), groups.end(), [&](const auto& group) {
    return group.size() > 1 &&
           log_product(space, group) > std::log10(static_cast<double>(options.most_listed));
  });
  for (const auto& group : groups) {
    const double log = log_product(space, group);
    SpaceSize part;
    if (log <= std::log10(static_cast<double>(options.most_listed))) {
      std::uint64_t count = 0;
      RowWalker(space, solver, group).each([&](const auto&) { return ++count > 0; });
      part.log10 = count == 0 ? -std::numeric_limits<double>::infinity()
                              : std::log10(static_cast<double>(count));
    } else if (group.size() == 1) {
      part.log10 = log;
    } else {
      const auto until = Clock::now() + std::chrono::duration<double>(
                                            options.seconds / static_cast<double>(sampled_groups));
      std::vector<double> logs;
      RowWalker walker(space, solver, group);
      while (logs.size() < kFewestSamples || (logs.size() < kMostSamples && Clock::now() < until)) {
        logs.push_back(walker.random_way(random));
        if (logs.size() >= 2 && Clock::now() > until + std::chrono::seconds(5)) break;
      }
      part = mean_of_logs(logs);
      total.exact = false;
      low_spread += (part.log10 - part.log10_low) * (part.log10 - part.log10_low);
      high_spread += (part.log10_high - part.log10) * (part.log10_high - part.log10);
    }
    total.log10 += part.log10;
  }
  total.log10_low = total.log10 - std::sqrt(low_spread);
  total.log10_high = total.log10 + std::sqrt(high_spread);
  return total;
}

Result<std::vector<std::vector<int>>> all_rows(const CoverModel& model, const Space& space,
                                               std::uint64_t most) {
  std::vector<std::uint32_t> parameters(model.parameters.size());
  std::iota(parameters.begin(), parameters.end(), 0U);
  SpaceSolver solver(space);
  std::vector<std::vector<int>> out;
  const bool complete =
      RowWalker(space, solver, parameters).each([&](const std::vector<Literal>& path) {
        if (out.size() >= most) return false;
        Row row;
        for (const Literal& literal : path) row.push_back(literal.level);
        out.push_back(decode(model, row));
        return true;
      });
  if (!complete) {
    return fail(ErrorCode::kTooBig,
                fmt::format("{}: the space has {} valid configurations, more than the {} that may "
                            "be listed; use a covering design, or fewer levels",
                            model.source, describe(valid_size(model, space)), most));
  }
  return out;
}

std::vector<std::vector<int>> random_rows(const CoverModel& model, const Space& space,
                                          std::uint64_t count, std::uint64_t seed) {
  constexpr int kUniformTries = 2000;  // in a row without success, before giving up on uniform
  constexpr int kRepeats = 200;        // known rows in a row that make us list what is left
  SampleRandom random(seed);
  std::set<std::vector<int>> seen;
  std::vector<std::vector<int>> out;
  const auto take = [&](std::vector<int> row) {
    if (!seen.insert(row).second) return false;
    out.push_back(std::move(row));
    return true;
  };
  int failures = 0;
  while (out.size() < count && failures < kUniformTries) {
    Row row(model.parameters.size());
    for (std::size_t p = 0; p < row.size(); ++p) {
      row[p] = static_cast<std::uint16_t>(random() % space.parameters[p].level_count);
    }
    const std::vector<int> levels = decode(model, row);
    failures = is_valid(model, levels) && take(levels) ? 0 : failures + 1;
  }
  SpaceSolver solver(space);
  std::vector<std::uint32_t> order(model.parameters.size());
  std::iota(order.begin(), order.end(), 0U);
  int repeats = 0;
  while (out.size() < count && repeats < kRepeats) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Literal> path;
    std::optional<Row> row = solver.solve();
    if (!row) return out;
    for (const std::uint32_t p : order) {
      std::vector<std::uint16_t> levels(space.parameters[p].level_count);
      std::iota(levels.begin(), levels.end(), std::uint16_t{0});
      std::shuffle(levels.begin(), levels.end(), random);
      for (const std::uint16_t level : levels) {
        path.push_back({p, level, true});
        if ((*row)[p] == level) break;
        if (auto better = solver.solve(path)) {
          row = std::move(better);
          break;
        }
        path.pop_back();
      }
    }
    repeats = take(decode(model, *row)) ? 0 : repeats + 1;
  }
  if (out.size() < count) {
    // Hardly anything new turns up: the space is about used up, so list it.
    const auto rest = all_rows(model, space, count * 4);
    if (!rest) return out;
    for (const std::vector<int>& row : *rest) {
      if (out.size() < count) take(row);
    }
  }
  return out;
}

}  // namespace greynic::testgen
