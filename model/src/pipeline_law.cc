#include "pipeline_law.h"

#include <ceres/jet.h>

#include <algorithm>
#include <vector>

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
  return LawAt(fitted_values).at(output, setting);
}

double evaluate(Output output, const Setting& setting, const Values& fitted_values,
                std::span<const int> active, std::span<double> gradient) {
  return LawAt(fitted_values, active).at(output, setting, gradient);
}

namespace {

/// Does the output depend on the parameter at all? Spares a third of the derivatives.
bool depends(Output output, int j) {
  const bool latency_only = (j >= kBaseUs && j < kBaseUs + kOperationCount) || j == kInlineBytes ||
                            j == kFetchUs || j == kByteNs || j == kBurstGapUs || j == kQpWaitUs ||
                            j == kPageWaitUs;
  const bool bandwidth_only =
      j == kPcieGbps || j == kPostNs || j == kDoorbellNs || j == kDoorbellWaitNs ||
      j == kMessageNs || j == kSendGapNs || j == kQueueBaseUs || j == kQpMissNs || j == kQpStall ||
      j == kPageMissNs || j == kWqeEntries || j == kWqeMissNs || j == kFlowSetupNs;
  return output == kLogBandwidth ? !latency_only : !bandwidth_only;
}

}  // namespace

struct LawAt::State {
  using JetValues = std::array<Jet, kParameterCount>;
  /// Up to kWidth derivatives at a time: where they stand in the gradient, and the values with
  /// them.
  struct Pass {
    std::array<std::size_t, kWidth> place{};
    int count = 0;
    JetValues values;
  };
  std::array<double, kParameterCount> shown_values;
  std::array<std::vector<Pass>, 2> passes;  ///< by output
  std::size_t active = 0;
};

LawAt::LawAt(const Values& fitted_values, std::span<const int> active)
    : state_(std::make_unique<State>()) {
  for (int j = 0; j < kParameterCount; ++j) {
    state_->shown_values[j] = shown(static_cast<Parameter>(j), fitted_values[j]);
  }
  state_->active = active.size();
  for (const Output output : {kLogBandwidth, kLogLatency}) {
    auto& passes = state_->passes[output];
    for (std::size_t k = 0; k < active.size(); ++k) {
      const int j = active[k];
      if (!depends(output, j)) continue;
      if (passes.empty() || passes.back().count == kWidth) {
        State::Pass& pass = passes.emplace_back();
        for (int i = 0; i < kParameterCount; ++i) pass.values[i] = Jet(state_->shown_values[i]);
      }
      State::Pass& pass = passes.back();
      // d exp(v) / d v = exp(v); the deviations are not exponentiated.
      pass.values[j].v[pass.count] = parameters()[j].logarithmic ? state_->shown_values[j] : 1.0;
      pass.place[static_cast<std::size_t>(pass.count++)] = k;
    }
  }
}
LawAt::LawAt(LawAt&&) noexcept = default;
LawAt& LawAt::operator=(LawAt&&) noexcept = default;
LawAt::~LawAt() = default;

double LawAt::at(Output output, const Setting& setting) const {
  return output_of(output, setting, state_->shown_values);
}

double LawAt::at(Output output, const Setting& setting, std::span<double> gradient) const {
  std::fill_n(gradient.begin(), state_->active, 0.0);
  if (state_->passes[output].empty()) return at(output, setting);
  double result = 0.0;
  for (const State::Pass& pass : state_->passes[output]) {
    const Jet out = output_of(output, setting, pass.values);
    result = out.a;
    for (int k = 0; k < pass.count; ++k)
      gradient[pass.place[static_cast<std::size_t>(k)]] = out.v[k];
  }
  return result;
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
