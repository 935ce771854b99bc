#include "pipeline_law.h"

#include <ceres/jet.h>

namespace greynic::model::pipeline {
namespace {

/// Derivatives carried at a time: enough for most fits in three passes, few enough for registers.
constexpr int kWidth = 8;
using Jet = ceres::Jet<double, kWidth>;

template <typename T>
T output_of(Output output, const Setting& setting,
            const std::array<T, kParameterCount>& shown_values) {
  using std::log;
  const Law<T> law(shown_values, setting);
  return log(output == kLogBandwidth ? law.bandwidth_gbps() : law.latency_us());
}

}  // namespace

double hit_share_in_turn(double fill) {
  // Newton from below the root, where the curve is convex: it cannot step past 1, the other root.
  double hit = std::exp(-fill);
  for (int step = 0; step < 50; ++step) {
    const double image = std::exp(-(1.0 - hit) * fill);
    const double change = (image - hit) / (1.0 - fill * image);
    hit += change;
    if (!(std::abs(change) > 1e-14)) break;
  }
  return std::clamp(hit, 0.0, 1.0 - 1e-12);
}

double evaluate(Output output, const Setting& setting, const Values& fitted_values) {
  std::array<double, kParameterCount> values;
  for (int j = 0; j < kParameterCount; ++j) {
    values[j] = shown(static_cast<Parameter>(j), fitted_values[j]);
  }
  return output_of(output, setting, values);
}

double evaluate(Output output, const Setting& setting, const Values& fitted_values,
                std::span<const int> active, std::span<double> gradient) {
  std::array<Jet, kParameterCount> values;
  for (int j = 0; j < kParameterCount; ++j) {
    values[j] = Jet(shown(static_cast<Parameter>(j), fitted_values[j]));
  }
  double result = 0.0;
  for (std::size_t first = 0; first < active.size(); first += kWidth) {
    const std::size_t count = std::min<std::size_t>(kWidth, active.size() - first);
    for (std::size_t k = 0; k < count; ++k) {
      const int j = active[first + k];
      // d exp(v) / d v = exp(v); the deviations are not exponentiated.
      values[j].v[static_cast<int>(k)] = parameters()[j].logarithmic ? values[j].a : 1.0;
    }
    const Jet out = output_of(output, setting, values);
    result = out.a;
    for (std::size_t k = 0; k < count; ++k) {
      gradient[first + k] = out.v[static_cast<int>(k)];
      values[active[first + k]].v.setZero();
    }
  }
  return active.empty() ? evaluate(output, setting, fitted_values) : result;
}

struct DirectionalLaw::State {
  std::array<Jet, kParameterCount> values;
};

DirectionalLaw::DirectionalLaw(const Values& fitted_values, const Directions& directions)
    : state_(std::make_unique<State>()) {
  static_assert(kWidth == kDirections);
  for (int j = 0; j < kParameterCount; ++j) {
    Jet& value = state_->values[j];
    value.a = shown(static_cast<Parameter>(j), fitted_values[j]);
    const double slope = parameters()[j].logarithmic ? value.a : 1.0;
    for (int k = 0; k < kDirections; ++k) value.v[k] = slope * directions[j][k];
  }
}
DirectionalLaw::DirectionalLaw(DirectionalLaw&&) noexcept = default;
DirectionalLaw& DirectionalLaw::operator=(DirectionalLaw&&) noexcept = default;
DirectionalLaw::~DirectionalLaw() = default;

DirectionalLaw::Result DirectionalLaw::at(Output output, const Setting& setting) const {
  const Jet out = output_of(output, setting, state_->values);
  return {out.a, out.v.squaredNorm()};
}

}  // namespace greynic::model::pipeline
