#include "scalacn/plane.h"

#include <Eigen/Core>
#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>

namespace greynic::model {

Result<void> fit_plane(const std::vector<Sample>& samples, ScalacnState& state) {
  const auto m = static_cast<Eigen::Index>(samples.size());
  using ThreeColumns = Eigen::Matrix<double, Eigen::Dynamic, 3>;  // else the compiler writes all of BLAS
  ThreeColumns a(m, 3);
  Eigen::VectorXd y(m);
  for (Eigen::Index i = 0; i < m; ++i) {
    const Sample& sample = samples[static_cast<std::size_t>(i)];
    a.row(i) << sample.q.local, sample.q.remote, 1.0;
    y[i] = sample.value;
  }
  const Eigen::ColPivHouseholderQR<ThreeColumns> qr(a);
  if (qr.rank() < 3) {
    return fail(ErrorCode::kRankDeficient,
                "the latency plane needs masks varied on the local and on the remote side, apart "
                "from each other");
  }
  const Eigen::Vector3d x = qr.solve(y);
  state.coefficients.a = x[0];
  state.coefficients.b = x[1];
  state.coefficients.c = x[2];
  const double variance = m > 3 ? (y - a.lazyProduct(x)).squaredNorm() / static_cast<double>(m - 3) : 0.0;
  state.residual[pipeline::kLogLatency] = std::sqrt(variance);
  const Eigen::Matrix3d squares = a.transpose().lazyProduct(a);
  const Eigen::Matrix3d covariance = squares.inverse() * variance;
  state.latency_covariance.assign(covariance.data(), covariance.data() + covariance.size());
  return {};
}

}  // namespace greynic::model
