#include "rogue/child_agent.h"

#include <fmt/core.h>

#include <cstdio>
#include <iostream>
#include <thread>

#include "fake_device/fake_rdma.h"
#include "greynic/agent/agent.h"
#include "greynic/daemon/ending.h"
#include "rogue/honest_caller.h"

namespace greynic::agent {

int serve_as_child(const std::string& certificates) {
  const daemon::Ending ending("agent");
  verbs::fake_rdma() = {};
  auto agent = Agent::start({.listen = "127.0.0.1:0",
                             .certificates = certificates,
                             .device = verbs::kFakeDevice,
                             .longest_run = std::chrono::seconds(60)});
  if (!agent) {
    fmt::print(stderr, "{}\n", agent.error().message);
    return 1;
  }
  fmt::print("{}\n", (*agent)->address());
  std::fflush(stdout);
  std::thread([address = (*agent)->address(), certificates] {
    for (std::string line; std::getline(std::cin, line);) {
      const Observation seen = measured_by(line.empty() ? address : line, certificates);
      fmt::print("{}: {}\n", to_string(seen.outcome), seen.reason);
      std::fflush(stdout);
    }
    std::_Exit(0);  // who asks is gone, perhaps by a crash
  }).detach();
  (*agent)->serve(ending.asked());
  agent->reset();
  // The thread that waits for questions has no end of its own.
  std::_Exit(0);
}

}  // namespace greynic::agent
