#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "validation/experiments.h"
#include "validation/surface_fit.h"

/// ScalaCN's published surfaces of six RNICs on the grid 0..20 x 0..20 of local and remote groups.

namespace greynic::twin {
namespace {

constexpr int kEdge = 20;
constexpr double kUnitGbps = 1.073741824;  ///< MiB/s x 8/1024, in Gbit/s

HostLoad at(double local, double remote) {
  HostLoad w;
  w.qp_count = 32;
  w.signal_every = 100;
  w.message_bytes = {8388608};
  w.walk(Hop::kClientEncap).groups = local;
  w.walk(Hop::kServerDecap).groups = remote;
  return w;
}

/// Item 7: every fourth cell of the grid is a sample; the fit is judged on all cells.
void recover(Bench& bench, const std::vector<SurfaceSample>& cells,
             const std::vector<SurfaceSample>& trips, double line) {
  const PublishedSurface& published = *bench.model().surface;
  std::vector<SurfaceSample> samples;
  for (const SurfaceSample& cell : cells) {
    if (std::fmod(cell.local, 4) == 0 && std::fmod(cell.remote, 4) == 0) samples.push_back(cell);
  }
  const PublishedSurface rate = fit_bandwidth(samples);
  const PublishedSurface trip = fit_latency(trips);
  std::vector<double> seen;
  std::vector<double> fitted;
  double rate_error = 0;
  double trip_error = 0;
  for (const SurfaceSample& cell : cells) {
    const double wanted = std::min(published.bandwidth(cell.local, cell.remote), line);
    seen.push_back(cell.value);
    fitted.push_back(rate.bandwidth(cell.local, cell.remote));
    rate_error += std::abs(fitted.back() / wanted - 1);
    trip_error += std::abs(
        trip.latency(cell.local, cell.remote) / published.latency(cell.local, cell.remote) - 1);
  }
  std::vector<Series> cuts;
  for (const double remote : {0.0, 10.0, 20.0}) {
    cuts.push_back({fmt::format("published, {} remote groups", remote), true, {}});
    cuts.push_back({fmt::format("fitted, {} remote groups", remote), false, {}});
    for (int local = 0; local <= kEdge; ++local) {
      const double wanted = std::min(published.bandwidth(local, remote), line);
      cuts[cuts.size() - 2].points.emplace_back(local, wanted * kUnitGbps);
      cuts.back().points.emplace_back(local, rate.bandwidth(local, remote) * kUnitGbps);
    }
  }
  bench.picture({"item07", bench.model().name + ": the form fitted to 36 samples of the twin",
                 "local groups", "Gbit/s", false, false, std::move(cuts)});
  const auto count = static_cast<double>(cells.size());
  bench.accept(7, "bandwidth form fitted to 36 samples, goodness", "", 1,
               goodness_of_fit(seen, fitted), 0.90, 1);
  bench.accept(7, "fitted bandwidth, mean difference from published", "", 0, rate_error / count, 0,
               0.06);
  seen.clear();
  fitted.clear();
  for (const SurfaceSample& cell : trips) {
    seen.push_back(cell.value);
    fitted.push_back(trip.latency(cell.local, cell.remote));
  }
  bench.accept(7, "latency form fitted to 15 samples, goodness", "", 1,
               goodness_of_fit(seen, fitted), 0.90, 1);
  bench.accept(7, "fitted latency, mean difference from published", "", 0, trip_error / count, 0,
               0.06);
}

}  // namespace

void surfaces(Bench& bench) {
  const PublishedSurface& published = *bench.model().surface;
  const double line = bench.model().parameters.link_rate_gbps * 1024 / 1156 / kUnitGbps;
  double sum = 0;
  double squares = 0;
  double residuals = 0;
  double errors = 0;
  double worst = 0;
  int clamped = 0;
  std::vector<Series> cuts;
  std::vector<SurfaceSample> grid;
  std::vector<SurfaceSample> trips;
  for (int remote = 0; remote <= kEdge; ++remote) {
    for (int local = 0; local <= kEdge; ++local) {
      const double raw = published.bandwidth(local, remote);
      if (raw > line) ++clamped;
      const double wanted = std::min(raw, line);
      const double seen = bench.rate(at(local, remote), 40000).gbps / kUnitGbps;
      grid.push_back({static_cast<double>(local), static_cast<double>(remote), seen});
      sum += wanted;
      squares += wanted * wanted;
      residuals += (seen - wanted) * (seen - wanted);
      const double error = std::abs(seen / wanted - 1);
      errors += error;
      worst = std::max(worst, error);
      if (remote % 10 == 0) {
        if (local == 0) {
          cuts.push_back({fmt::format("published, {} remote groups", remote), true, {}});
          cuts.push_back({fmt::format("twin, {} remote groups", remote), false, {}});
        }
        cuts[cuts.size() - 2].points.emplace_back(local, wanted * kUnitGbps);
        cuts.back().points.emplace_back(local, seen * kUnitGbps);
      }
    }
  }
  const double cells = (kEdge + 1) * (kEdge + 1);
  const double r2 = 1 - residuals / (squares - sum * sum / cells);
  bench.accept(6, "bandwidth surface, R^2", "", 1, r2, 0.95, 1);
  bench.accept(6, "bandwidth surface, mean error", "", 0, errors / cells, 0, 0.05);
  bench.accept(6, "bandwidth surface, worst cell", "", 0, worst, 0, 0.15);
  bench.explains(static_cast<std::size_t>(cells));
  if (clamped > 0) {
    bench.note(
        fmt::format("the published surface exceeds the line rate in {} of {:.0f} cells (at the "
                    "origin by {:.0f} %); "
                    "the line rate stands for it there",
                    clamped, cells, (published.bandwidth(0, 0) / line - 1) * 100));
  }
  double latency_worst = 0;
  std::vector<Series> latency = {{"published, no remote groups", true, {}},
                                 {"twin, no remote groups", false, {}},
                                 {"published, 20 remote groups", true, {}},
                                 {"twin, 20 remote groups", false, {}}};
  for (int remote = 0; remote <= kEdge; remote += 10) {
    for (int local = 0; local <= kEdge; local += 5) {
      HostLoad w = at(local, remote);
      w.message_bytes = {2};
      const double seen = bench.half_rtt_us(w, 100);
      const double wanted = published.latency(local, remote);
      trips.push_back({static_cast<double>(local), static_cast<double>(remote), seen});
      latency_worst = std::max(latency_worst, std::abs(seen / wanted - 1));
      if (remote % 20 == 0) {
        latency[remote == 0 ? 0 : 2].points.emplace_back(local, wanted);
        latency[remote == 0 ? 1 : 3].points.emplace_back(local, seen);
      }
    }
  }
  bench.accept(6, "latency surface, worst of 15 cells", "", 0, latency_worst, 0, 0.06);
  bench.explains(15);
  bench.picture({"item06_bandwidth", bench.model().name + ": bandwidth under flow groups",
                 "local groups", "Gbit/s", false, false, cuts});
  bench.picture({"item06_latency", bench.model().name + ": latency under flow groups",
                 "local groups", "us", false, false, latency});
  recover(bench, grid, trips, line);
}

}  // namespace greynic::twin
