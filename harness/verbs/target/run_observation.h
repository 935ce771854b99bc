#pragma once

/// Writes what a run of traffic found into its observation.

#include <deque>
#include <string>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "peer/fan_out.h"

namespace greynic::verbs {

void end(Observation& observation, Outcome outcome, std::string reason);
/// Refused where a device or the verbs say no, else failed.
void end(Observation& observation, const Error& error);

/// The granted configuration: what the device and this driver made of what was asked.
void note_granted(std::deque<Part>& parts, const TrafficPlan& plan, Observation& observation);

/// The measures, or why there are none: payloads that arrived wrong (kFailed), nothing that
/// completed in time (kTooShort).
void note_measures(const TrafficPlan& plan, const RequestReport& report, const PeerReport& far,
                   const AnswerReport& near, Observation& observation);

}  // namespace greynic::verbs
