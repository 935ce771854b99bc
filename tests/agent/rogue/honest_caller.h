#pragma once

/// A caller like any other: a short run of XRC, the one transport of the device in memory.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "fake_device/fake_rdma.h"
#include "greynic/agent/agent.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::agent {

inline std::unique_ptr<target::Target> target_at(const std::string& address,
                                                 const std::string& certificates = "") {
  const std::string lab = certificates.empty() ? "" : "&certificates=" + certificates;
  const auto specs = target::parse_specs(
      fmt::format("verbs:fake0?validate=true&stall=1s&peer={}{}", address, lab));
  auto opened = verbs::verbs_kind(remote_peer).open(specs->front());
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  return opened ? std::move(*opened) : nullptr;
}

inline target::MeasureRequest short_run(const std::string& more) {
  return {.configuration = *parse_configuration(
              "transport=XRC,message_bytes=64,send_queue_depth=8,receive_queue_depth=8,"
              "mr_bytes=65536,qp_count=6,qps_per_cq=2," +
              more),
          .duration = std::chrono::milliseconds(50),
          .seed = 5};
}

inline Observation measured_by(const std::string& address, const std::string& certificates = "",
                               const std::string& more = "operation=SEND") {
  const auto target = target_at(address, certificates);
  return target == nullptr ? Observation{} : measure_patiently(*target, short_run(more));
}

}  // namespace greynic::agent
