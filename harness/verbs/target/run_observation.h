#pragma once

/// What a run of traffic leaves in its observation.

#include <deque>
#include <string>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "peer/fan_out.h"

namespace greynic::verbs {

void end(Observation& observation, Outcome outcome, std::string reason);
/// Refused where a device or the verbs say no, else failed.
void end(Observation& observation, const Error& error);

/// What the device and this driver made of what was asked.
void note_granted(std::deque<Part>& parts, const TrafficPlan& plan, Observation& observation);

/// The measures of a run that went through, or why there are none: payloads that arrived wrong,
/// nothing that completed in time.
void note_measures(const TrafficPlan& plan, const RequestReport& report, const PeerReport& far,
                   const AnswerReport& near, Observation& observation);

}  // namespace greynic::verbs
