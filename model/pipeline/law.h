#pragma once

/// The pipeline law as a function of its parameters; its terms stand in pipeline_terms.h.

#include <memory>

#include "data/setting.h"
#include "pipeline/parameters.h"

namespace greynic::model::pipeline {

/// A burst is what a QP hands over before another gets its turn.
inline constexpr double kBurstPackets = 4.0;

/// Natural logarithms of what the law predicts.
enum Output : int { kLogBandwidth, kLogLatency };

/// The law at fixed values, set up once for many settings: what fits spend their time on. One
/// thread at a time.
class LawAt {
 public:
  explicit LawAt(const Values& fitted_values);
  LawAt(LawAt&&) noexcept;
  LawAt& operator=(LawAt&&) noexcept;
  ~LawAt();
  [[nodiscard]] double at(Output output, const Setting& setting) const;
  /// The same with d output / d fitted value of every parameter.
  double at(Output output, const Setting& setting, Values& gradient);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace greynic::model::pipeline
