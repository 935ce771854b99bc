#pragma once

/// What each flow of a whole workload gets: bandwidth, latency and tail latency, from a model that
/// was fitted to one kind of traffic at a time. docs/models/workload.md has the derivation.
///
/// Flows share the sending side of one host's RNIC and the receiving side of another's. Each
/// message keeps a side busy for as long as the model says that its slowest part takes for it when
/// all QPs of that RNIC are in use. Rates grow together, by QP, until a flow has what it asked for
/// or a side is full (max-min fairness); waiting times are those of a queue with random arrivals
/// (M/G/1, Pollaczek-Khinchine) at both sides; a flow that never has enough waits for its own
/// window (Little's law).

#include <map>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/model/model.h"

namespace greynic::model {

struct WorkloadFlow {
  std::string name;
  std::string from;  ///< host that asks; where a READ's answer goes
  std::string to;
  double offered_gbps = 0.0;  ///< goodput asked for; 0: as much as there is
  Configuration configuration;
  Packet packet;  ///< what the layouts are asked with
  bool has_packet = false;
};

struct Workload {
  std::vector<WorkloadFlow> flows;
  std::map<Hop, Layout> layouts;  ///< set the masks of that hop for flows that have a packet
};

struct FlowPrediction {
  std::string name;
  PredictedMeasure bandwidth_gbps;
  PredictedMeasure latency_us_p50;
  PredictedMeasure latency_us_p99;
  double share_granted = 1.0;  ///< of what was offered; 1 for flows without a limit
  std::string limited_by;      ///< "offer", "itself", "HOST sends" or "HOST receives"
  bool extrapolated = false;
  double distance = 0.0;
};

struct SidePrediction {
  std::string host;
  bool sends = false;
  double busy_share = 0.0;
};

struct WorkloadPrediction {
  std::vector<FlowPrediction> flows;  ///< in the order of the workload
  std::vector<SidePrediction> sides;
};

/// docs/formats/workload.md. Paths of layouts are relative to the file. kBadInput.
[[nodiscard]] Result<Workload> read_workload(const std::string& path);

/// kBadInput when the model predicts no bandwidth or cannot take a configuration.
[[nodiscard]] Result<WorkloadPrediction> predict_workload(const Model& model,
                                                          const Workload& workload);

}  // namespace greynic::model
