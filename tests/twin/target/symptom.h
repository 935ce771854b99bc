#pragma once

/// What a planted defect does to a measurement, as its literature counts it: the defect alone
/// against no defect, in the same configuration.

#include <gtest/gtest.h>

#include <string>

#include "greynic/core/configuration.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {

inline Observation measured(const std::string& defects, const Configuration& configuration) {
  target::MeasureRequest request;
  request.configuration = configuration;
  request.seed = 5;
  request.duration = std::chrono::milliseconds(2);
  return target::measure_one(*create("twin:cx6?threads=1&defects=" + defects).value(), request)
      .value();
}

/// Several hosts send to one. They offer more than it can take, so the port of the switch pauses
/// them, its RNIC pauses the port, and receive WQEs run out: congestion, which Collie's definition
/// of an anomaly excludes (two hosts on a switch that carries line rate).
inline bool is_crowd(const Configuration& configuration) {
  return configuration.number("host_count") > 2;
}

enum class Symptom { kNone, kPauses, kSlow, kOutcome, kDeletion };

inline std::ostream& operator<<(std::ostream& out, Symptom symptom) {
  constexpr const char* kNames[] = {"none", "pauses", "slow", "outcome", "slow deletion"};
  return out << kNames[static_cast<int>(symptom)];
}

/// Pauses of more than a thousandth, a fifth of the rate (Collie's definition of an anomaly, pauses
/// first), an outcome, or a slower rule deletion.
inline Symptom symptom(const std::string& defect, const Configuration& configuration) {
  const Observation with = measured(defect, configuration);
  const Observation none = measured("none", configuration);
  if (with.outcome != none.outcome) return Symptom::kOutcome;
  if (with.outcome != Outcome::kMeasured) return Symptom::kNone;
  if (!is_crowd(configuration)) {
    EXPECT_LE(*none.value("pause_share"), 0.001) << configuration.name();
    if (*with.value("pause_share") > 0.001) return Symptom::kPauses;
  }
  if (*with.value(measure::kPacketRate) < 0.8 * *none.value(measure::kPacketRate)) {
    return Symptom::kSlow;
  }
  return *with.value("rule_delete_us") > 1.5 * *none.value("rule_delete_us") ? Symptom::kDeletion
                                                                             : Symptom::kNone;
}

}  // namespace greynic::twin
