#include "validation/surface_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "greynic/statistics/random.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 17;

// Claim:  the fit finds the function that samples were drawn from, noise or not.
// Oracle: planted coefficients, those published for ConnectX-6 and CX-7 rounded; the function is
//         compared, since coefficients trade off against one another.
// Method: 36 samples of the grid, noise of 0 and of 1 %; the mean difference on all 441 cells.
TEST(SurfaceFit, FindsThePlantedFunction) {
  const PublishedSurface planted[] = {{320, 26, -20, -27, 28, 0.047, 0.068, 2.69},
                                      {200, 30, -5, -10, 10, 0.02, 0.05, 5.0}};
  statistics::Random random(kSeed);
  for (const PublishedSurface& truth : planted) {
    for (const double noise : {0.0, 0.01}) {
      std::vector<SurfaceSample> rates;
      std::vector<SurfaceSample> trips;
      for (int l = 0; l <= 20; l += 4) {
        for (int r = 0; r <= 20; r += 4) {
          const auto jitter = [&] { return 1 + noise * (2 * random.uniform() - 1); };
          rates.push_back({1.0 * l, 1.0 * r, truth.bandwidth(l, r) * jitter()});
          trips.push_back({1.0 * l, 1.0 * r, truth.latency(l, r) * jitter()});
        }
      }
      const PublishedSurface rate = fit_bandwidth(rates);
      const PublishedSurface trip = fit_latency(trips);
      double rate_error = 0;
      double trip_error = 0;
      for (int l = 0; l <= 20; ++l) {
        for (int r = 0; r <= 20; ++r) {
          rate_error += std::abs(rate.bandwidth(l, r) / truth.bandwidth(l, r) - 1) / 441;
          trip_error += std::abs(trip.latency(l, r) / truth.latency(l, r) - 1) / 441;
        }
      }
      EXPECT_LT(rate_error, noise > 0 ? 0.01 : 1e-4) << "seed " << kSeed;
      EXPECT_LT(trip_error, noise > 0 ? 0.01 : 1e-9) << "seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace greynic::twin
