#pragma once

/// The published ScalaCN forms as a Model: two inputs, a bell for bandwidth and a plane for
/// latency. Kept for comparison: docs/models/scalacn.md says where they fail.

#include <memory>
#include <optional>
#include <vector>

#include "data/domain.h"
#include "data/points.h"
#include "greynic/model/model.h"
#include "greynic/model/published.h"

namespace greynic::model {

struct ScalacnState : FittedOn {
  ScalacnCoefficients coefficients;
  /// Standard deviation of observations about the form, Gbit/s and us; empty: output not fitted.
  std::array<std::optional<double>, kOutputCount> residual;
  /// Covariance of (u, v, m, n, w) in the form's own units, and of (a, b, c); empty: not known.
  std::vector<double> bandwidth_covariance;
  std::vector<double> latency_covariance;
  std::optional<double> line_gbps;  ///< goodput that the port allows; the published bells pass it
};

class ScalacnModel final : public Model {
 public:
  explicit ScalacnModel(ScalacnState state) : state_(std::move(state)) {}
  [[nodiscard]] std::string law() const override { return "scalacn"; }
  [[nodiscard]] std::vector<std::string> inputs() const override;
  [[nodiscard]] Result<Prediction> predict(const Configuration& configuration) const override;
  [[nodiscard]] std::string to_json_text() const override;
  [[nodiscard]] const ScalacnState& state() const { return state_; }
  [[nodiscard]] ScalacnState& state() { return state_; }

 private:
  ScalacnState state_;
};

/// A published row as it stands, clamped to its port.
[[nodiscard]] std::unique_ptr<Model> published_model(const PublishedRow& row);

/// Q_l and Q_r: masks at the local and at the remote RNIC.
struct LocalRemote {
  double local = 0.0;
  double remote = 0.0;
};
[[nodiscard]] LocalRemote local_remote(const Setting& setting);

/// Fits both forms to the points. kTooFewPoints (distinct Q_l, Q_r), kNotConverged, kRankDeficient.
[[nodiscard]] Result<ScalacnState> fit_scalacn(const Points& points, std::uint64_t seed);

}  // namespace greynic::model
