#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// The levels of a numeric factor that the pictures walk through.
struct Range {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;

  /// Factors that span decades are walked in equal ratios, the others in equal steps.
  [[nodiscard]] bool in_ratios() const { return least > 0.0 && most / least >= 50.0; }
  [[nodiscard]] double level_at(double share) const {
    return std::round(in_ratios() ? least * std::pow(most / least, share)
                                  : least + share * (most - least));
  }
};

/// Empty for factors that are not numeric and for those of one level.
std::optional<Range> range_of(const Content& content, const std::string& factor) {
  Range range;
  for (const results::Group& group : content.groups) {
    const FactorValue* level = group.configuration->find(factor);
    if (level == nullptr || !std::holds_alternative<double>(*level)) return std::nullopt;
    range.least = std::min(range.least, std::get<double>(*level));
    range.most = std::max(range.most, std::get<double>(*level));
  }
  return range.most > range.least ? std::optional(range) : std::nullopt;
}

/// What was measured along a factor, everything else at the baseline.
json measured_along(const Content& content, const std::string& metric, const std::string& factor,
                    std::vector<double>& values) {
  json data = json::array();
  for (const results::Group& group : content.groups) {
    Configuration others = *group.configuration;
    others.set(factor, content.baseline->number(factor));
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, metric));
    if (!content.is_baseline(others) || mean.count == 0) continue;
    data.push_back({group.configuration->number(factor), mean.value, mean.value - mean.half_width,
                    mean.value + mean.half_width});
    values.push_back(mean.value);
  }
  return data;
}

/// The law along one numeric factor, everything else at the baseline, with the data that lie there.
void add_curve(const Content& content, const std::string& metric, const std::string& factor,
               Page& page, Table& table) {
  const auto range = range_of(content, factor);
  if (!range) return;
  std::vector<double> values;
  json data = measured_along(content, metric, factor, values);
  constexpr int kSteps = 40;
  json curve = json::array();
  for (int i = 0; i <= kSteps; ++i) {
    const double x = range->level_at(static_cast<double>(i) / kSteps);
    Configuration at = *content.baseline;
    at.set(factor, x);
    const auto predicted = content.options.predictor(at, metric);
    if (!predicted) continue;
    values.push_back(predicted->value);
    curve.push_back({x, predicted->value, predicted->low, predicted->high});
    if (i % 4 == 0) {
      table.add({metric, factor, number(x), number(predicted->value),
                 interval(predicted->low, predicted->high)});
    }
  }
  if (curve.size() < 2) return;
  page.chart({{"kind", "law"},
              {"curve", std::move(curve)},
              {"data", std::move(data)},
              {"log", range->in_ratios()},
              {"axis", axis_of(metric, values)}},
             factor, true);
}

/// The law over two factors, everything else at the baseline: masks first, they make the walls.
void add_surface(const Content& content, const std::string& metric, Page& page, Table& table) {
  std::vector<std::pair<std::string, Range>> axes;
  for (const bool masks : {true, false}) {
    for (const std::string& factor : content.columns.varied) {
      const auto range = range_of(content, factor);
      if (range && factor.ends_with("_masks") == masks) axes.emplace_back(factor, *range);
    }
  }
  if (axes.size() < 2) return;
  const auto& [x_name, x_range] = axes[0];
  const auto& [y_name, y_range] = axes[1];
  constexpr int kCells = 16;
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < kCells; ++i) {
    x.push_back(x_range.level_at(static_cast<double>(i) / (kCells - 1)));
    y.push_back(y_range.level_at(static_cast<double>(i) / (kCells - 1)));
  }
  json cells = json::array();
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      Configuration at = *content.baseline;
      at.set(x_name, x[i]);
      at.set(y_name, y[j]);
      const auto predicted = content.options.predictor(at, metric);
      if (!predicted) continue;
      cells.push_back({i, j, predicted->value});
      if (i % 5 == 0 && j % 5 == 0) {
        table.add({metric, x_name + ", " + y_name, number(x[i]) + ", " + number(y[j]),
                   number(predicted->value), interval(predicted->low, predicted->high)});
      }
    }
  }
  if (cells.empty()) return;
  page.chart({{"kind", "surface"},
              {"x", x},
              {"y", y},
              {"cells", std::move(cells)},
              {"x_name", x_name},
              {"y_name", y_name},
              {"axis", title_of(metric)}},
             fmt::format("The law over {} and {}, the rest at the baseline.", x_name, y_name),
             true);
}

}  // namespace

void add_law_pictures(const Content& content, const std::string& metric, Page& page, Table& table) {
  if (!content.baseline || !content.options.predictor(*content.baseline, metric)) return;
  page.begin_grid();
  for (const std::string& factor : content.columns.varied) {
    add_curve(content, metric, factor, page, table);
  }
  add_surface(content, metric, page, table);
  page.end_grid();
}

}  // namespace greynic::report
