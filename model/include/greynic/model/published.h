#pragma once

/// The six rows of coefficients that ScalaCN published, and the two forms they belong to. Embedded
/// in the program from results/reference/scalacn_rows.json, which names source and grade of each.

#include <span>
#include <string>
#include <string_view>

namespace greynic::model {

/// BW(Q_l, Q_r) = u exp(-((Q_l-m)^2 + (Q_r-n)^2) / (2 v^2)) + w in units of 2^30 bit/s;
/// LAT(Q_l, Q_r) = a Q_l + b Q_r + c in us.
struct ScalacnCoefficients {
  double u = 0, v = 1, m = 0, n = 0, w = 0;
  double a = 0, b = 0, c = 0;

  /// Gbit/s of 1e9; not clamped to any line.
  [[nodiscard]] double bandwidth_gbps(double local_masks, double remote_masks) const;
  /// Half a round trip.
  [[nodiscard]] double latency_us(double local_masks, double remote_masks) const;
};

struct PublishedRow {
  std::string key;   ///< "cx6", as in published:cx6
  std::string name;  ///< "ConnectX-6"
  ScalacnCoefficients coefficients;
  double goodness = 0.0;        ///< of fit, as published
  double line_rate_gbps = 0.0;  ///< of the port
};

/// In the order of the file.
[[nodiscard]] std::span<const PublishedRow> published_rows();
[[nodiscard]] const PublishedRow* find_published(std::string_view key);

}  // namespace greynic::model
