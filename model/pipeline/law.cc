#include "pipeline/law.h"

#include <algorithm>
#include <cmath>

#include "pipeline/terms.h"

namespace greynic::model::pipeline {

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

namespace {

std::array<double, kParameterCount> shown_values(const Values& fitted_values) {
  std::array<double, kParameterCount> all;
  for (int j = 0; j < kParameterCount; ++j) {
    all[j] = shown(static_cast<Parameter>(j), fitted_values[j]);
  }
  return all;
}

/// The parameters as the leaves of a tape.
std::array<Variable, kParameterCount> leaves(const std::array<double, kParameterCount>& values,
                                             Tape& tape) {
  std::array<Variable, kParameterCount> all;
  for (int j = 0; j < kParameterCount; ++j) {
    all[j] = Variable(values[j], &tape, tape.leaf());
  }
  return all;
}

template <typename T>
T output_of(Output output, const Law<T>& law) {
  using std::log;
  return log(output == kLogBandwidth ? law.bandwidth_gbps() : law.latency_us());
}

}  // namespace

struct LawAt::State {
  explicit State(const Values& fitted_values)
      : plain(shown_values(fitted_values)),
        variables(leaves(plain.p, tape)),
        prepared_nodes(tape.size()) {
    // d exp(v) / d v = exp(v); the deviations are not exponentiated.
    for (int j = 0; j < kParameterCount; ++j) {
      slope[j] = parameters()[j].logarithmic ? plain.p[j] : 1.0;
    }
  }
  Prepared<double> plain;
  Values slope;  ///< d shown value / d fitted value
  Tape tape;
  Prepared<Variable> variables;
  std::size_t prepared_nodes;  ///< of the tape, common to all settings
};

LawAt::LawAt(const Values& fitted_values) : state_(std::make_unique<State>(fitted_values)) {}
LawAt::LawAt(LawAt&&) noexcept = default;
LawAt& LawAt::operator=(LawAt&&) noexcept = default;
LawAt::~LawAt() = default;

double LawAt::at(Output output, const Setting& setting) const {
  return output_of(output, Law<double>(state_->plain, setting));
}

double LawAt::at(Output output, const Setting& setting, Values& gradient) {
  const Law<double> plain(state_->plain, setting);
  state_->tape.cut(state_->prepared_nodes);
  const Variable out = output_of(output, Law<Variable>(state_->variables, setting, plain));
  state_->tape.sweep(out.node, gradient);
  for (int j = 0; j < kParameterCount; ++j) gradient[j] *= state_->slope[j];
  return out.value;
}

}  // namespace greynic::model::pipeline
