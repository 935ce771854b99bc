#include "greynic/model/grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "pipeline/grid.h"
#include "pipeline/model.h"

namespace greynic::model {
namespace {

constexpr std::size_t kMostCells = 100'000'000;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

FactorType type_of(std::string_view factor, std::string_view level) {
  if (const FactorInfo* info = find_factor(factor)) return info->type;
  return parse_factor_value(FactorType::kNumeric, level) ? FactorType::kNumeric
                                                         : FactorType::kCategorical;
}

Result<std::vector<FactorValue>> parse_range(std::string_view factor, std::string_view text) {
  const auto parts = split(text, ':');
  double numbers[3] = {0.0, 0.0, 1.0};
  if (parts.size() > 3) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--grid: {}={}: write low:high:step", factor, text));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = parse_factor_value(FactorType::kNumeric, parts[i]);
    if (!number) return number.error().while_doing(fmt::format("--grid: {}", factor));
    numbers[i] = std::get<double>(*number);
  }
  const auto [low, high, step] = numbers;
  if (high < low || step <= 0.0 || (high - low) / step > static_cast<double>(kMostCells)) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("--grid: {}={}: the range must rise, with a step above 0", factor, text));
  }
  std::vector<FactorValue> levels;
  const auto count = static_cast<std::size_t>(std::floor((high - low) / step + 1e-9)) + 1;
  for (std::size_t i = 0; i < count; ++i) levels.emplace_back(low + step * static_cast<double>(i));
  return levels;
}

std::size_t cell_count(const std::vector<GridAxis>& axes) {
  std::size_t cells = 1;
  for (const GridAxis& axis : axes) cells *= axis.levels.size();
  return cells;
}

/// Any model, one cell at a time.
Result<void> predict_each(const Model& model, const std::vector<GridAxis>& axes, std::size_t first,
                          std::size_t last, GridPrediction& grid) {
  for (std::size_t cell = first; cell < last; ++cell) {
    const auto prediction = model.predict(grid_cell(axes, cell));
    if (!prediction) return pass_on(prediction);
    grid.distance[cell] = prediction->distance;
    for (GridColumn& column : grid.columns) {
      const auto found = prediction->measures.find(column.measure);
      if (found == prediction->measures.end()) continue;
      column.value[cell] = found->second.value;
      column.low[cell] = found->second.low;
      column.high[cell] = found->second.high;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<GridAxis>> parse_grid(std::string_view text) {
  std::vector<GridAxis> axes;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("--grid: '{}' is not factor=low:high:step or factor=a|b|c", part));
    }
    GridAxis axis{std::string(part.substr(0, equals)), {}};
    const std::string_view levels = part.substr(equals + 1);
    if (levels.find(':') != std::string_view::npos) {
      auto range = parse_range(axis.factor, levels);
      if (!range) return pass_on(range);
      axis.levels = std::move(*range);
    } else {
      for (const std::string_view level : split(levels, '|')) {
        auto value = parse_factor_value(type_of(axis.factor, level), level);
        if (!value) return value.error().while_doing(fmt::format("--grid: {}", axis.factor));
        axis.levels.push_back(std::move(*value));
      }
    }
    for (const GridAxis& other : axes) {
      if (other.factor == axis.factor) {
        return fail(ErrorCode::kBadInput, fmt::format("--grid: {} stands twice", axis.factor));
      }
    }
    axes.push_back(std::move(axis));
    if (cell_count(axes) > kMostCells) {
      return fail(ErrorCode::kTooBig, fmt::format("--grid: more than {} cells", kMostCells));
    }
  }
  return axes;
}

Configuration grid_cell(const std::vector<GridAxis>& axes, std::size_t cell) {
  Configuration configuration;
  for (std::size_t a = axes.size(); a-- > 0;) {
    configuration.set(axes[a].factor, axes[a].levels[cell % axes[a].levels.size()]);
    cell /= axes[a].levels.size();
  }
  return configuration;
}

Result<GridPrediction> predict_grid(const Model& model, const std::vector<GridAxis>& axes,
                                    int threads) {
  GridPrediction grid;
  grid.cells = cell_count(axes);
  grid.distance.assign(grid.cells, 0.0);
  const auto* pipeline_model = dynamic_cast<const PipelineModel*>(&model);
  for (int o = 0; o < kOutputCount; ++o) {
    if (pipeline_model != nullptr && !pipeline_model->state().fitted[static_cast<std::size_t>(o)]) {
      continue;
    }
    GridColumn column{std::string(kOutputNames[static_cast<std::size_t>(o)]), {}, {}, {}};
    for (auto* part : {&column.value, &column.low, &column.high}) part->assign(grid.cells, 0.0);
    grid.columns.push_back(std::move(column));
  }
  std::optional<PipelineGrid> fast;
  if (pipeline_model != nullptr) {
    auto prepared = PipelineGrid::prepare(pipeline_model->state(), axes);
    if (!prepared) return pass_on(prepared);
    fast = std::move(*prepared);
  }
  const std::size_t workers = threads > 0
                                  ? static_cast<std::size_t>(threads)
                                  : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  std::mutex mutex;
  Result<void> outcome;
  std::vector<std::jthread> pool;
  for (std::size_t w = 0; w < workers; ++w) {
    const std::size_t first = grid.cells * w / workers;
    const std::size_t last = grid.cells * (w + 1) / workers;
    pool.emplace_back([&, first, last] {
      if (fast) {
        fast->predict(first, last, grid);
        return;
      }
      auto ok = predict_each(model, axes, first, last, grid);
      if (ok) return;
      const std::scoped_lock lock(mutex);
      outcome = pass_on(ok);
    });
  }
  pool.clear();
  if (!outcome) return pass_on(outcome);
  return grid;
}

}  // namespace greynic::model
