#pragma once

/// The experiments behind the published curves, one function each; validation.cc runs those that
/// were made with a given RNIC. Numbers of items are those of docs/twin/validation.md.

#include "engine/engine.h"
#include "greynic/twin/validation.h"

namespace greynic::twin {

/// What every experiment needs: where it writes, and how it measures.
class Bench {
 public:
  Bench(const RnicModel& model, const std::string& rnic, std::uint64_t seed,
        ValidationReport& report)
      : model_(model), rnic_(rnic), seed_(seed), report_(report) {}

  /// The model, under another profile of its file.
  [[nodiscard]] const RnicModel& model() const { return model_; }
  /// Its name or file, for fabrics.
  [[nodiscard]] const std::string& rnic() const { return rnic_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] BandwidthResult rate(const HostLoad& load, std::uint64_t most_packets = 200000);
  /// Median half round trip, us.
  [[nodiscard]] double half_rtt_us(const HostLoad& load, std::uint64_t rounds = 200);

  void accept(int item, std::string curve, std::string unit, double published, double twin,
              double low, double high) {
    report_.rows.push_back({item, std::move(curve), std::move(unit), published, twin, low, high});
  }
  /// Accepts within a share of the published value.
  void within(int item, std::string curve, std::string unit, double published, double twin,
              double share) {
    accept(item, std::move(curve), std::move(unit), published, twin, published * (1 - share),
           published * (1 + share));
  }
  void picture(Picture picture) { report_.pictures.push_back(std::move(picture)); }
  void note(std::string text) { report_.notes.push_back(std::move(text)); }
  void explains(std::size_t points) { report_.published_point_count += points; }

 private:
  const RnicModel& model_;
  const std::string& rnic_;
  std::uint64_t seed_;
  ValidationReport& report_;
};

// experiments_logs.cc: items 1, 3, 4, 5, profile "logs".
void latency_under_groups(Bench& bench);
void bandwidth_of_large_messages(Bench& bench);
void rate_of_small_messages(Bench& bench);
void one_qp_against_four(Bench& bench);

// experiments_surface.cc: items 6 and 7, profile "surface".
void surfaces(Bench& bench);

// experiments_sharing.cc: items 8 and 9.
void doorbell_sharing(Bench& bench, Operation operation);
void outstanding_requests(Bench& bench, Operation operation);

// experiments_scale.cc: items 10 to 14.
void qp_count_cx3(Bench& bench);
void qp_count_cx5(Bench& bench);
void qp_count_cx7(Bench& bench);
void steering_hops(Bench& bench);
void pcie_bandwidth(Bench& bench);

}  // namespace greynic::twin
