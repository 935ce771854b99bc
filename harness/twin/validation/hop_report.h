#pragma once

/// What steering counters say about packet rate: two pipes a direction, one clock cycle a hop.
/// Recovered from Neo-Host reports (docs/twin/validation.md, item 13).

#include <algorithm>

namespace greynic::twin {

struct HopReport {
  double hops_per_packet = 0;
  double best_mpps = 0;    ///< when work is split evenly
  double actual_mpps = 0;  ///< bound of the busier pipe
};

[[nodiscard]] inline HopReport hop_report(double clock_mhz, double pipe_0_work, double pipe_1_work,
                                          double packets) {
  HopReport report;
  report.hops_per_packet = (pipe_0_work + pipe_1_work) / packets;
  report.best_mpps = clock_mhz / (report.hops_per_packet / 2);
  report.actual_mpps = clock_mhz / (std::max(pipe_0_work, pipe_1_work) / packets);
  return report;
}

}  // namespace greynic::twin
