#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "greynic/twin/fabric.h"

/// Hosts whose RNICs are of different models.

namespace greynic::twin {
namespace {

constexpr std::uint32_t kMessages = 1000, kMessageBytes = 16384, kDepth = 64;

struct Outcome {
  std::uint32_t done = 0;
  Time took = 0;
};

/// Host 0 WRITEs to host 1 and the other way round, each with kDepth messages open.
Outcome exchange(const std::string& one, const std::string& other) {
  FabricSpec spec;
  spec.bytes = FabricSpec::Bytes::kCounted;
  spec.host.rnic = one;
  spec.others[1] = {.rnic = other};
  auto made = Fabric::create(spec);
  EXPECT_TRUE(made) << made.error().message;
  if (!made) return {};
  Fabric& fabric = **made;
  std::array<RegionId, 2> regions;
  std::array<QpId, 2> qps;
  std::array<CqId, 2> cqs;
  for (const HostId host : {0U, 1U}) {
    const DomainId domain = *fabric.create_domain(host);
    regions[host] = *fabric.register_counted(domain, kMessageBytes, access::kAll);
    cqs[host] = *fabric.create_cq(host, {.depth = 2 * kDepth});
    qps[host] =
        *fabric.create_qp({.domain = domain, .send_cq = cqs[host], .receive_cq = cqs[host]});
  }
  EXPECT_TRUE(fabric.connect(qps[0], 0, qps[1], 1));
  std::array<std::uint32_t, 2> posted{}, done{};
  const auto post = [&](HostId host) {
    const Sge here{fabric.region_address(regions[host]), kMessageBytes, fabric.key(regions[host])};
    SendRequest request;
    request.kind = WorkKind::kWrite;
    request.elements = std::span(&here, 1);
    request.remote_address = fabric.region_address(regions[1 - host]);
    request.rkey = fabric.key(regions[1 - host]);
    EXPECT_TRUE(fabric.post_send(qps[host], std::span(&request, 1)));
    ++posted[host];
  };
  for (const HostId host : {0U, 1U}) {
    while (posted[host] < kDepth) post(host);
  }
  Outcome outcome;
  for (Time until = 1e3; until < 20e6 && outcome.done < 2 * kMessages; until += 1e3) {
    fabric.run_until(until);
    for (const HostId host : {0U, 1U}) {
      std::array<Completion, kDepth> some;
      const int count = fabric.poll(cqs[host], some);
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(some[static_cast<std::size_t>(i)].status, WcStatus::kSuccess);
        ++done[host];
        if (posted[host] < kMessages) post(host);
      }
    }
    outcome = {done[0] + done[1], until};
  }
  return outcome;
}

// Claim:  RNICs of any two models carry each other's traffic, no slower than the slower of the two
//         carries it between two of its own kind: what one model bounds (packets in its closed
//         loop) is given back by a receiver of another.
// Oracle: pairs of one model.
// Method: WRITEs both ways at once, many times as many packets as a closed loop holds.
TEST(MixedModels, CarryWhatTheSlowerOneCarries) {
  const std::vector<std::string> models = {"cx3", "cx4", "cx5", "cx6", "cx7", "bf3", "e810"};
  std::vector<Time> alone;
  for (const std::string& model : models) {
    const Outcome outcome = exchange(model, model);
    ASSERT_EQ(outcome.done, 2 * kMessages) << model;
    alone.push_back(outcome.took);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (std::size_t j = 0; j < models.size(); ++j) {
      if (i == j) continue;
      const Outcome outcome = exchange(models[i], models[j]);
      const std::string pair = models[i] + " with " + models[j];
      EXPECT_EQ(outcome.done, 2 * kMessages) << pair;
      EXPECT_LT(outcome.took, 1.1 * std::max(alone[i], alone[j])) << pair;
    }
  }
}

}  // namespace
}  // namespace greynic::twin
