#include "engine/cover_forecast.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "engine/prefix_bits.h"

namespace greynic::testgen {
namespace {

constexpr std::size_t kMostStrength = 6;
/// How much better than by chance greedy rows cover.
constexpr double kGreed = 1.6;
/// Rows that are left of the greedy ones after the search.
constexpr double kLeftBySearch = 0.8;
/// By strength, from 1: units of work that a search takes for each root of tuples times cells, and
/// steps that a unit takes.
constexpr std::array<double, kMostStrength> kSearchWork = {49, 49, 19, 31, 53, 118};
constexpr std::array<double, kMostStrength> kSearchSteps = {7, 7, 19, 4.5, 4.5, 4.5};
/// No search goes on for longer (kMostWork of cover_attempt.cc).
constexpr double kMostSearchWork = 2e9;

double choose(double n, std::size_t k) {
  double count = 1;
  for (std::size_t i = 0; i < k; ++i) {
    count *= std::max(0.0, n - static_cast<double>(i)) / static_cast<double>(i + 1);
  }
  return count;
}

double levels_of(const Space& space, std::uint32_t p) {
  return space.parameters[p].level_count - (space.parameters[p].absent_level >= 0 ? 1.0 : 0.0);
}

std::size_t values_of(const ValueIndex& index, const Layer& layer) {
  const std::uint32_t last = layer.parameters.back();
  return index.first(last) + index.level_count(last);
}

/// "12 s", "4 min", "3 h", "5 days".
std::string rough_time(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  constexpr double kDay = 86400;
  if (seconds < 2 * kMinute) return fmt::format("{:.2g} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.0f} h", seconds / kHour);
  return fmt::format("{:.2g} days", seconds / kDay);
}

std::size_t strength_of(const Layer& layer) { return static_cast<std::size_t>(layer.strength); }

std::size_t strength_of(const std::vector<Layer>& layers) {
  std::size_t strength = 1;
  for (const Layer& layer : layers) strength = std::max(strength, strength_of(layer));
  return strength;
}

/// How many choices of parameters have so many combinations, these to within a few per cent.
std::map<double, double> choices_by_combinations(const Space& space, const Layer& layer) {
  constexpr double kBucketsPerOctave = 64;
  std::map<double, double> parameters_with;  // by levels
  for (const std::uint32_t p : layer.parameters) ++parameters_with[levels_of(space, p)];
  std::vector<std::map<int, double>> choices(strength_of(layer) + 1);
  choices[0][0] = 1;
  for (const auto& [levels, parameters] : parameters_with) {
    const int bucket = static_cast<int>(std::lround(kBucketsPerOctave * std::log2(levels)));
    for (std::size_t size = choices.size(); --size > 0;) {
      for (std::size_t of_these = 1; of_these <= size; ++of_these) {
        const double ways = choose(parameters, of_these);
        if (ways == 0) break;
        for (const auto& [other, count] : choices[size - of_these]) {
          choices[size][other + bucket * static_cast<int>(of_these)] += ways * count;
        }
      }
    }
  }
  std::map<double, double> out;
  for (const auto& [bucket, count] : choices.back()) {
    out[std::exp2(bucket / kBucketsPerOctave)] = count;
  }
  return out;
}

/// Of as many parameters as the strength: those with most levels.
double most_combinations(const Space& space, const Layer& layer) {
  std::vector<double> levels;
  for (const std::uint32_t p : layer.parameters) levels.push_back(levels_of(space, p));
  std::ranges::sort(levels, std::greater());
  double product = 1;
  for (std::size_t i = 0; i < strength_of(layer); ++i) product *= levels[i];
  return product;
}

struct LayerRows {
  double greedy = 0.0;
  double least = 0.0;  ///< one for each combination of the parameters with most levels
};

LayerRows rows_of(const Space& space, const Layer& layer) {
  const auto choices = choices_by_combinations(space, layer);
  if (choices.empty()) return {};
  const auto open_after = [&](double rows) {
    double open = 0;
    for (const auto& [combinations, count] : choices) {
      open += count * std::exp(-kGreed * rows / combinations);
    }
    return open;
  };
  const double most = most_combinations(space, layer);
  double low = 0;
  double high = most;
  while (open_after(high) > 1) high *= 2;
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (open_after(middle) > 1 ? low : high) = middle;
  }
  return {std::max(high, most), most};
}

}  // namespace

double tuples_of(const Space& space, const Layer& layer) {
  // The elementary symmetric polynomial of the numbers of levels.
  std::vector<double> sums(strength_of(layer) + 1, 0.0);
  sums[0] = 1;
  for (const std::uint32_t p : layer.parameters) {
    for (std::size_t i = sums.size(); --i > 0;) sums[i] += sums[i - 1] * levels_of(space, p);
  }
  return sums.back();
}

double table_bytes(const ValueIndex& index, const Layer& layer) {
  return PrefixBits::bytes_needed(values_of(index, layer), strength_of(layer) - 1);
}

double steps_to_lay_out(const ValueIndex& index, const Layer& layer) {
  constexpr double kPerByte = 4;
  constexpr double kPerPair = 10;
  const auto values = static_cast<double>(values_of(index, layer));
  return kPerByte * table_bytes(index, layer) + kPerPair * values * values;
}

double steps_of_a_row(const ValueIndex& index, const Layer& layer) {
  constexpr double kCacheBytes = 8e6;
  constexpr double kSlowest = 4;  // of a table that no cache holds against one that does
  const auto parameters = static_cast<double>(layer.parameters.size());
  const auto values = static_cast<double>(values_of(index, layer));
  const double words = std::ceil(values / 64);
  const std::size_t strength = strength_of(layer);
  const double slower =
      std::clamp(1 + std::log2(table_bytes(index, layer) / kCacheBytes), 1.0, kSlowest);
  constexpr double kPerParameter = 30;  // whatever the strength
  if (strength <= 2) return parameters * (kPerParameter + values * 0.3);
  if (strength == 3) return parameters * (kPerParameter + values * words) * 1.2;
  return parameters * kPerParameter + choose(parameters, strength - 1) * values * 0.6 * slower;
}

double steps_of_search_work(const std::vector<Layer>& layers) {
  return kSearchSteps[strength_of(layers) - 1];
}

Forecast forecast(const Space& space, const ValueIndex& index, const std::vector<Layer>& layers) {
  Forecast out;
  double greedy = 0;
  double least = 1;
  double tuples = 0;
  double lay_out = 0;
  double row = 0;
  double parameters = 0;
  for (const Layer& layer : layers) {
    const LayerRows rows = rows_of(space, layer);
    greedy = std::max(greedy, rows.greedy);
    least = std::max(least, rows.least);
    tuples += tuples_of(space, layer);
    lay_out += steps_to_lay_out(index, layer);
    row += steps_of_a_row(index, layer);
    parameters = std::max(parameters, static_cast<double>(layer.parameters.size()));
  }
  if (layers.empty()) return out;
  const std::size_t strength = strength_of(layers);
  // Above triples a tuple looked at counts once for each few words of the set of rows.
  const double words = strength > 3 ? 1 + greedy / 64 : 1;
  const double work = std::min(
      kMostSearchWork, kSearchWork[strength - 1] * std::sqrt(tuples * greedy * parameters * words));
  out.rows = std::max(least, kLeftBySearch * greedy);
  out.steps = lay_out + greedy * row + work * steps_of_search_work(layers);
  return out;
}

std::string describe(const CoverEstimate& estimate) {
  std::string text = fmt::format(
      "{} parameters, at most {:.3g} tuples of {}, {:.3g} MB of tables; about {} rows, in ",
      estimate.parameters, estimate.tuples, estimate.strength, estimate.bytes / 1e6,
      estimate.rows < 1e6 ? fmt::format("{:.0f}", estimate.rows)
                          : fmt::format("{:.2g}", estimate.rows));
  constexpr double kNotWorthTelling = 1.0;
  constexpr double kEitherWay = 3.0;
  const double deadline = estimate.deadline_seconds;
  const double seconds = estimate.seconds;
  if (deadline > 0 && kEitherWay * seconds < deadline) {
    return text + fmt::format("at most the deadline of {}", rough_time(deadline));
  }
  if (seconds < kNotWorthTelling) return text + "about a second at most";
  text += fmt::format("about {} ({} to {})", rough_time(seconds), rough_time(seconds / kEitherWay),
                      rough_time(seconds * kEitherWay));
  if (deadline > 0) {
    text += fmt::format(" if the deadline of {} did not end it", rough_time(deadline));
  }
  return text;
}

double affordable_bytes() {
  constexpr double kMost = 0x1p33;
  std::ifstream file("/proc/meminfo");
  std::string name;
  double kilobytes = 0;
  std::string unit;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return std::min(kMost, kilobytes * 1024);
    std::getline(file, unit);
  }
  return kMost;
}

}  // namespace greynic::testgen
