#include <fmt/core.h>

#include <Eigen/Core>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>

#include "fitting/problem_shape.h"

namespace greynic::model {

Result<void> check_shapes(const LeastSquaresProblem& problem, std::size_t n) {
  if (n == 0 || !problem.residuals) {
    return fail(ErrorCode::kBadInput, "least squares needs parameters and a residual function");
  }
  if (problem.residual_count < n) {
    return fail(ErrorCode::kTooFewPoints,
                fmt::format("{} residuals cannot determine {} parameters; measure more settings",
                            problem.residual_count, n));
  }
  for (const auto* bounds : {&problem.lower, &problem.upper}) {
    if (!bounds->empty() && bounds->size() != n) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{} bounds for {} parameters", bounds->size(), n));
    }
  }
  return {};
}

Result<Determination> determine(const LeastSquaresProblem& problem,
                                std::span<const double> parameters) {
  const auto n = static_cast<Eigen::Index>(parameters.size());
  const auto m = static_cast<Eigen::Index>(problem.residual_count);
  if (auto ok = check_shapes(problem, parameters.size()); !ok) return pass_on(ok);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  RowMajor jacobian(m, n);
  std::vector<double> residuals(problem.residual_count);
  if (!problem.residuals(parameters, residuals,
                         {jacobian.data(), static_cast<std::size_t>(m * n)}) ||
      !jacobian.allFinite()) {
    return fail(ErrorCode::kNotConverged, "the Jacobian does not exist at the minimum");
  }
  // Columns of length 1 make the condition number one of shape, not of units.
  Eigen::VectorXd length = jacobian.colwise().norm().transpose();
  for (Eigen::Index j = 0; j < n; ++j) {
    if (length[j] == 0.0) {
      return fail(ErrorCode::kRankDeficient, fmt::format("parameter {} changes no residual", j));
    }
  }
  const Eigen::MatrixXd scaled = jacobian * length.cwiseInverse().asDiagonal();
  // The triangle has the same singular values and right vectors, and is small.
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(scaled);
  const Eigen::MatrixXd triangle = qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
  const Eigen::JacobiSVD<Eigen::MatrixXd, Eigen::NoQRPreconditioner> svd(triangle,
                                                                         Eigen::ComputeFullV);
  const Eigen::VectorXd& s = svd.singularValues();
  Determination result;
  result.rank = static_cast<int>((s.array() > 1e-10 * s[0]).count());
  result.condition_number = s[n - 1] > 0.0 ? s[0] / s[n - 1] : HUGE_VAL;
  const Eigen::VectorXd weakest = svd.matrixV().col(n - 1);
  result.weakest.assign(weakest.data(), weakest.data() + n);
  if (result.rank < n) {
    std::string indices;
    for (Eigen::Index j = 0; j < n; ++j) {
      if (std::abs(weakest[j]) > 0.3) indices += fmt::format(" {}", j);
    }
    return fail(ErrorCode::kRankDeficient,
                fmt::format("parameters{} cannot be told apart by these points", indices));
  }
  const Eigen::MatrixXd v = svd.matrixV() * s.cwiseInverse().asDiagonal();
  const Eigen::MatrixXd unscaled = length.cwiseInverse().asDiagonal() * v;
  const RowMajor covariance = unscaled * unscaled.transpose();
  result.covariance.assign(covariance.data(), covariance.data() + n * n);
  return result;
}

}  // namespace greynic::model
