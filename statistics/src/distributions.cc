#include "greynic/statistics/distributions.h"

// The only file that includes Boost.Math: it costs four seconds of compilation.
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>

namespace greynic::statistics {
namespace {

namespace bm = boost::math;

// Beyond this the t distribution is the normal one to more digits than anyone prints.
constexpr double kNormalFreedom = 1e6;

}  // namespace

double normal_upper_tail(double z) {
  if (std::isinf(z)) return z > 0 ? 0.0 : 1.0;
  return bm::cdf(bm::complement(bm::normal(), z));
}

double student_upper_tail(double t, double freedom) {
  if (freedom > kNormalFreedom || std::isinf(t)) return normal_upper_tail(t);
  return bm::cdf(bm::complement(bm::students_t(freedom), t));
}

double student_upper_quantile(double chance, double freedom) {
  if (freedom > kNormalFreedom) return bm::quantile(bm::complement(bm::normal(), chance));
  return bm::quantile(bm::complement(bm::students_t(freedom), chance));
}

double gamma_quantile(double shape, double chance) { return bm::gamma_p_inv(shape, chance); }

double digamma(double x) { return bm::digamma(x); }

double trigamma(double x) { return bm::trigamma(x); }

}  // namespace greynic::statistics
