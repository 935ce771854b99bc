#pragma once

/// Measurements on a twin, and how well a model explains them.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "greynic/model/model.h"
#include "greynic/twin/twin.h"
#include "sized.h"

namespace greynic::model {

/// Every RNIC of the twin; under a sanitizer one, whose fit takes minutes there.
inline std::vector<std::string> twin_rnics() {
  std::vector<std::string> all = {"cx4", "cx5", "cx6", "cx7", "bf3", "e810"};
  all.resize(sized(all.size(), std::size_t{1}));
  return all;
}

inline std::vector<Observation> run_on(
    const std::string& target, const std::vector<Configuration>& configurations,
    std::chrono::nanoseconds duration = std::chrono::milliseconds(5)) {
  auto twin = twin::create(target);
  EXPECT_TRUE(twin) << (twin ? "" : twin.error().message);
  std::vector<target::MeasureRequest> requests;
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    requests.push_back({.configuration = configurations[i], .duration = duration, .seed = 100 + i});
  }
  std::vector<Observation> observations(requests.size());
  const auto ok = (*twin)->measure(requests, [&](std::size_t index, Observation observation) {
    observations[index] = std::move(observation);
    return true;
  });
  EXPECT_TRUE(ok) << (ok ? "" : ok.error().message);
  return observations;
}

/// The observation that the model misses most, for messages.
inline std::string worst_miss(const Model& model, const std::vector<Observation>& observations,
                              std::string_view name) {
  double worst = 0.0;
  std::string text;
  for (const Observation& o : observations) {
    const auto value = o.value(name);
    const auto prediction = model.predict(o.asked);
    if (!value || !prediction) continue;
    const double predicted = prediction->measures.at(std::string(name)).value;
    if (std::abs(predicted - *value) <= worst) continue;
    worst = std::abs(predicted - *value);
    text = fmt::format("{}: measured {:.4g}, predicted {:.4g}", o.asked.name(), *value, predicted);
  }
  return text;
}

/// How many values lie in their 95 % prediction intervals, and how wide those are (shares).
struct Coverage {
  int inside = 0;
  int asked = 0;
  double median_half_width = 0.0;
};

inline Coverage coverage(const Model& model, const std::vector<Observation>& observations,
                         std::string_view name) {
  Coverage result;
  std::vector<double> widths;
  for (const Observation& o : observations) {
    const auto value = o.value(name);
    const auto prediction = model.predict(o.asked);
    if (!value || !prediction) continue;
    const PredictedMeasure& predicted = prediction->measures.at(std::string(name));
    result.inside += *value >= predicted.low && *value <= predicted.high ? 1 : 0;
    ++result.asked;
    widths.push_back(std::log(predicted.high / predicted.low) / 2.0);
  }
  std::nth_element(widths.begin(), widths.begin() + result.asked / 2, widths.end());
  result.median_half_width = widths[static_cast<std::size_t>(result.asked / 2)];
  return result;
}

inline std::string to_text(const Coverage& held) {
  return fmt::format("{} of {} +-{:.1f}%", held.inside, held.asked, 100.0 * held.median_half_width);
}

inline double r2(const Model& model, const std::vector<Observation>& observations,
                 std::string_view name) {
  double sum = 0;
  double squares = 0;
  double misses = 0;
  double count = 0;
  for (const Observation& o : observations) {
    const auto value = o.value(name);
    const auto prediction = model.predict(o.asked);
    if (!value || !prediction) continue;
    const auto found = prediction->measures.find(std::string(name));
    if (found == prediction->measures.end()) continue;
    sum += *value;
    squares += *value * *value;
    misses += std::pow(found->second.value - *value, 2.0);
    count += 1;
  }
  return 1.0 - misses / (squares - sum * sum / count);
}

}  // namespace greynic::model
