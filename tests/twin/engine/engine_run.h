#pragma once

/// One run of the engine and all that it counted, for tests that look at one QP, packet by packet.

#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"

namespace greynic::twin {

inline Parameters cx6() { return load_model("cx6", "")->parameters; }

struct EngineRun {
  BandwidthResult result;
  std::vector<NicCounters> rnics;  ///< client, server, and what other clients there are
  NicCounters client, server;
  std::vector<double> messages;  ///< sent, by QP, of one client after another's
  std::uint64_t pauses = 0;      ///< that the server asked for
  std::uint64_t port_pauses = 0;
};

/// Exactly so long, in virtual time.
inline RunLimits lasting(double seconds) {
  RunLimits limits;
  limits.duration = seconds * 1e9;
  limits.whole_duration = true;
  return limits;
}

/// About so many packets, however well the mean is known.
inline RunLimits counting(std::uint64_t packets, double most_seconds = 10) {
  RunLimits limits;
  limits.duration = most_seconds * 1e9;
  limits.target_error = -1;
  limits.most_packets = packets;
  return limits;
}

/// The books must balance at the end.
inline EngineRun run_engine(const HostLoad& w, const RunLimits& limits, std::uint64_t seed,
                            const Parameters& parameters = cx6(), const Effects& effects = {}) {
  Engine engine(parameters, w, effects, seed);
  EngineRun run;
  run.result = engine.run_bandwidth(limits);
  EXPECT_EQ(engine.broken_law(), "");
  run.rnics = engine.all_counters();
  run.client = run.rnics[0];
  run.server = run.rnics[1];
  run.pauses = engine.pause_count();
  run.port_pauses = engine.port_pause_count();
  for (std::uint32_t qp = 0; qp < w.qp_count * w.sender_count; ++qp) {
    run.messages.push_back(engine.messages_sent(qp));
  }
  return run;
}

}  // namespace greynic::twin
