#include "sense.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "greynic/statistics/distributions.h"
#include "greynic/statistics/mean.h"
#include "greynic/statistics/random.h"

namespace greynic::causal {
namespace {

using statistics::Random;

constexpr std::uint64_t kSenseSeed = 0x73656e73;  // any fixed number
constexpr std::size_t kRepeats = 3;               // of a setting that moves alone
constexpr double kAsInWall = 0.75;
constexpr int kLeastPaths = 8;
constexpr int kMostDraws = 50;  // of a row, until the rules allow it
constexpr int kResamples = 500;

class Sense {
 public:
  Sense(Surroundings& around, int rows, Sensitivity& found)
      : around_(around), rows_(rows), found_(found), random_(kSenseSeed) {}

  Result<void> run();

 private:
  using Row = std::vector<FactorValue>;  // a level of each setting

  [[nodiscard]] Configuration configuration_of(const Row& row) const;
  [[nodiscard]] FactorValue other_level(std::size_t setting);
  [[nodiscard]] Row draw();
  [[nodiscard]] std::optional<Row> draw_allowed();
  [[nodiscard]] Result<void> move_alone();
  [[nodiscard]] Result<void> walk_paths();
  [[nodiscard]] Result<void> part_variance();
  [[nodiscard]] Estimate mean_of(const std::vector<double>& values) const;
  void add_indices(const std::vector<Row>& a, const std::vector<Row>& b, std::size_t setting);
  [[nodiscard]] std::optional<double> score(const Row& row) const {
    return around_.mean_score(configuration_of(row));
  }

  Surroundings& around_;
  int rows_;
  Sensitivity& found_;
  Random random_;
  std::vector<bool> frozen_;  // stays as in the wall
};

Configuration Sense::configuration_of(const Row& row) const {
  Configuration whole = around_.wall();
  for (std::size_t i = 0; i < row.size(); ++i) whole.set(around_.settings()[i].factor, row[i]);
  return whole;
}

FactorValue Sense::other_level(std::size_t setting) {
  const std::vector<FactorValue>& others = around_.settings()[setting].others;
  return others[random_.below(static_cast<std::uint32_t>(others.size()))];
}

Sense::Row Sense::draw() {
  Row row;
  for (std::size_t i = 0; i < around_.settings().size(); ++i) {
    const bool wall = frozen_[i] || random_.uniform() < kAsInWall;
    row.push_back(wall ? around_.settings()[i].wall : other_level(i));
  }
  return row;
}

std::optional<Sense::Row> Sense::draw_allowed() {
  for (int tries = 0; tries < kMostDraws; ++tries) {
    Row row = draw();
    if (around_.allows(configuration_of(row))) return row;
  }
  return std::nullopt;
}

Result<void> Sense::move_alone() {
  std::vector<Configuration> wanted = {around_.wall()};
  const auto with = [&](const Moved& moved, const FactorValue& level) {
    Configuration whole = around_.wall();
    whole.set(moved.factor, level);
    return whole;
  };
  for (const Moved& moved : around_.settings()) {
    for (const std::optional<FactorValue>& level :
         {std::optional(moved.base), moved.weaker, moved.stronger}) {
      if (level && around_.allows(with(moved, *level))) wanted.push_back(with(moved, *level));
    }
  }
  auto done = around_.test(wanted, kRepeats, "one setting at a time");
  if (!done) return done;
  for (std::size_t i = 0; i < around_.settings().size(); ++i) {
    const Moved& moved = around_.settings()[i];
    const auto at = [&](const std::optional<FactorValue>& level) -> std::optional<MovedAlone> {
      if (!level) return std::nullopt;
      const auto ratio = around_.ratio(with(moved, *level), around_.wall());
      return ratio ? std::optional(MovedAlone{*level, *ratio}) : std::nullopt;
    };
    found_.settings[i].healed = at(moved.base);
    found_.settings[i].weaker = at(moved.weaker);
    found_.settings[i].stronger = at(moved.stronger);
  }
  found_.noise = std::sqrt(around_.noise().variance);
  return {};
}

Estimate Sense::mean_of(const std::vector<double>& values) const {
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half =
      std::sqrt(squares / (count - 1.0) / count) *
      statistics::student_upper_quantile((1.0 - around_.confidence()) / 2.0, count - 1.0);
  return {mean, mean - half, mean + half};
}

/// A setting that may not move at its turn stays, and has no effect on that path.
Result<void> Sense::walk_paths() {
  struct Step {
    std::size_t setting;
    Configuration wall;
    Configuration other;
  };
  const std::size_t count = around_.settings().size();
  found_.paths = std::max(kLeastPaths, rows_ / 4);
  std::vector<Step> steps;
  std::vector<Configuration> wanted;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int path = 0; path < found_.paths; ++path) {
    auto row = draw_allowed();
    if (!row) continue;
    for (std::size_t i = count; i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(static_cast<std::uint32_t>(i))]);
    }
    wanted.push_back(configuration_of(*row));
    for (const std::size_t i : order) {
      const bool at_wall = (*row)[i] == around_.settings()[i].wall;
      Row next = *row;
      next[i] = at_wall ? other_level(i) : around_.settings()[i].wall;
      const Configuration from = configuration_of(*row);
      const Configuration to = configuration_of(next);
      if (!around_.allows(to)) continue;
      steps.push_back({i, at_wall ? from : to, at_wall ? to : from});
      wanted.push_back(to);
      row = std::move(next);
    }
  }
  auto done = around_.test(wanted, 1, "paths on which one setting moves at a time");
  if (!done) return done;
  std::vector<std::vector<double>> effects(count);
  for (const Step& step : steps) {
    const auto wall = around_.mean_score(step.wall);
    const auto other = around_.mean_score(step.other);
    if (wall && other) effects[step.setting].push_back(*wall - *other);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (effects[i].size() < 2) continue;
    SettingSensitivity& one = found_.settings[i];
    one.mean = mean_of(effects[i]);
    double squares = 0.0;
    for (const double effect : effects[i]) {
      squares += (effect - one.mean->value) * (effect - one.mean->value);
    }
    one.spread = std::sqrt(squares / (static_cast<double>(effects[i].size()) - 1.0));
    for (double& effect : effects[i]) effect = std::abs(effect);
    one.mean_of_size = mean_of(effects[i]);
  }
  return {};
}

/// What one row tells of an index; rows of which a test is missing tell nothing.
struct RowOfIndex {
  double a = 0.0;
  double b = 0.0;
  double mixed = 0.0;  // a with one level of b
  bool moved = false;  // that level is another one
};

struct Indices {
  double first = 0.0;
  double total = 0.0;
};

/// Noise adds its variance to every difference and to the variance, so it is taken off.
std::optional<Indices> indices_of(const std::vector<RowOfIndex>& rows,
                                  const std::vector<std::size_t>& chosen, double noise) {
  const double count = static_cast<double>(chosen.size());
  double sum = 0.0;
  double squares = 0.0;
  double moved = 0.0;
  for (const std::size_t i : chosen) {
    sum += rows[i].a + rows[i].b;
    squares += rows[i].a * rows[i].a + rows[i].b * rows[i].b;
    moved += rows[i].moved ? 1.0 : 0.0;
  }
  const double mean = sum / (2.0 * count);
  const double variance =
      (squares - 2.0 * count * mean * mean) / (2.0 * count - 1.0) - noise * noise;
  if (variance <= noise * noise * 0.1 || variance <= 1e-12) return std::nullopt;
  double first = 0.0;
  double total = 0.0;
  for (const std::size_t i : chosen) {
    const double step = rows[i].mixed - rows[i].a;
    first += (rows[i].b - mean) * step;
    total += step * step;
  }
  return Indices{first / count / variance,
                 (total / (2.0 * count) - noise * noise * moved / count) / variance};
}

Estimate interval_of(double value, std::vector<double> resampled, double confidence) {
  std::sort(resampled.begin(), resampled.end());
  const auto at = [&](double share) {
    const double place = share * (static_cast<double>(resampled.size()) - 1.0);
    return resampled[static_cast<std::size_t>(std::lround(place))];
  };
  const double tail = (1.0 - confidence) / 2.0;
  return {value, std::min(value, at(tail)), std::max(value, at(1.0 - tail))};
}

void Sense::add_indices(const std::vector<Row>& a, const std::vector<Row>& b, std::size_t setting) {
  std::vector<RowOfIndex> rows;
  for (std::size_t r = 0; r < a.size(); ++r) {
    Row mixed = a[r];
    mixed[setting] = b[r][setting];
    const auto of_a = score(a[r]);
    const auto of_b = score(b[r]);
    const auto of_mixed = score(mixed);
    if (!of_a || !of_b || !of_mixed) continue;
    rows.push_back({*of_a, *of_b, *of_mixed, mixed[setting] != a[r][setting]});
  }
  if (rows.size() < 8) return;
  std::vector<std::size_t> chosen(rows.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  const auto found = indices_of(rows, chosen, found_.noise);
  if (!found) return;
  std::vector<double> first;
  std::vector<double> total;
  for (int i = 0; i < kResamples; ++i) {
    for (std::size_t& one : chosen) one = random_.below(static_cast<std::uint32_t>(rows.size()));
    if (const auto again = indices_of(rows, chosen, found_.noise)) {
      first.push_back(again->first);
      total.push_back(again->total);
    }
  }
  if (first.size() < kResamples / 2) return;
  found_.settings[setting].first =
      interval_of(found->first, std::move(first), around_.confidence());
  found_.settings[setting].total =
      interval_of(found->total, std::move(total), around_.confidence());
}

Result<void> Sense::part_variance() {
  const std::size_t count = around_.settings().size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    const auto size = [&](std::size_t i) {
      const auto& mean = found_.settings[i].mean_of_size;
      return mean ? mean->value : 0.0;
    };
    return size(x) > size(y);
  });
  for (std::size_t i = kMostInSobol; i < count; ++i) frozen_[order[i]] = true;
  std::vector<Row> a;
  std::vector<Row> b;
  std::vector<Configuration> wanted;
  for (int r = 0; r < rows_; ++r) {
    auto one = draw_allowed();
    auto other = draw_allowed();
    if (!one || !other) continue;
    wanted.push_back(configuration_of(*one));
    wanted.push_back(configuration_of(*other));
    for (std::size_t i = 0; i < count; ++i) {
      if (frozen_[i]) continue;
      Row mixed = *one;
      mixed[i] = (*other)[i];
      const Configuration whole = configuration_of(mixed);
      if (around_.allows(whole)) wanted.push_back(whole);
    }
    a.push_back(std::move(*one));
    b.push_back(std::move(*other));
  }
  found_.rows = static_cast<int>(a.size());
  auto done = around_.test(wanted, 1, "rows that part the variance");
  if (!done) return done;
  for (std::size_t i = 0; i < count; ++i) {
    if (!frozen_[i]) add_indices(a, b, i);
  }
  return {};
}

Result<void> Sense::run() {
  found_.wall = around_.wall();
  found_.settings.clear();
  for (const Moved& moved : around_.settings()) {
    found_.settings.emplace_back();
    found_.settings.back().factor = moved.factor;
  }
  frozen_.assign(found_.settings.size(), false);
  const std::size_t before = around_.tests();
  Result<void> done = move_alone();
  if (done) done = walk_paths();
  if (done) done = part_variance();
  found_.tests = around_.tests() - before;
  std::stable_sort(found_.settings.begin(), found_.settings.end(),
                   [](const auto& x, const auto& y) {
                     const auto key = [](const SettingSensitivity& one) {
                       return std::pair(one.total ? one.total->value : -1.0,
                                        one.mean_of_size ? one.mean_of_size->value : -1.0);
                     };
                     return key(x) > key(y);
                   });
  return done;
}

}  // namespace

Result<void> sense(Surroundings& around, int rows, Sensitivity& found) {
  return Sense(around, rows, found).run();
}

}  // namespace greynic::causal
