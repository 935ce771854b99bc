// Runs inside the small machine: an agent on rxe1 in a process of its own, driven from rxe0.

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "greynic/agent/agent.h"
#include "greynic/target/target.h"
#include "greynic/verbs/faults.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::agent {
namespace {

/// An agent in a child process, so that it can be killed and stopped.
class Child {
 public:
  explicit Child(const std::string& certificates = "") {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    // Not fork: gRPC's own fork handlers may wait for its threads for ever.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::string directory = certificates;
    std::string name = "agent";
    std::string mode = "--serve";
    char* arguments[] = {name.data(), mode.data(), directory.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE* out = fdopen(ends[0], "r");
    char line[256] = "";
    EXPECT_NE(fgets(line, sizeof line, out), nullptr);
    address = std::string(line, strcspn(line, "\n"));
    fclose(out);
  }
  ~Child() {
    signal(SIGCONT);
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void signal(int number) const { kill(pid_, number); }
  std::string address;

 private:
  pid_t pid_ = -1;
};

std::unique_ptr<target::Target> open(const std::string& address, const std::string& more = "",
                                     const std::string& stall = "2s") {
  const auto specs = target::parse_specs("verbs:rxe0?stall=" + stall + "&peer=" + address + more);
  auto target = verbs::verbs_kind(remote_peer).open(specs->front());
  EXPECT_TRUE(target) << (target ? "" : target.error().message);
  return target ? std::move(*target) : nullptr;
}

Observation measure(target::Target& target, const std::string& configuration,
                    std::chrono::milliseconds duration = std::chrono::milliseconds(300)) {
  return measure_patiently(
      target,
      {.configuration = *parse_configuration(configuration), .duration = duration, .seed = 3});
}

// Claim:  traffic to a peer in another process carries its payload, in every direction and mode.
TEST(RemotePeer, CarriesTraffic) {
  const Child agent;
  const auto target = open(agent.address, "&validate=true");
  for (const char* configuration :
       {"operation=SEND,message_bytes=64", "operation=WRITE,message_bytes=4096",
        "operation=READ,message_bytes=512", "operation=FADD",
        "operation=SEND,message_bytes=64,direction=bidirectional",
        "operation=SEND,message_bytes=64,qp_count=32,receive_queue_depth=32,send_queue_depth=16"}) {
    const Observation seen = measure(*target, configuration, std::chrono::milliseconds(600));
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << configuration << ": " << seen.reason;
  }
  const auto pings = open(agent.address, "&mode=latency");
  EXPECT_EQ(measure(*pings, "operation=WRITE,message_bytes=64").outcome, Outcome::kMeasured);
}

// Claim:  rdma_cm connects to a peer behind the agent as well.
TEST(RemotePeer, IsConnectedByRdmaCm) {
  const Child agent;
  const auto target = open(agent.address, "&validate=true&connect=rdma_cm");
  for (const char* configuration : {"operation=SEND,message_bytes=64,qp_count=4,mr_count=4",
                                    "operation=READ,message_bytes=512,direction=bidirectional"}) {
    const Observation seen = measure(*target, configuration);
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << configuration << ": " << seen.reason;
  }
}

// Claim:  with certificates both sides must belong to the same lab.
TEST(RemotePeer, IsReachedWithCertificatesOfItsLabOnly) {
  const std::string lab = testing::TempDir() + "/lab";
  const std::string other = testing::TempDir() + "/other";
  std::filesystem::remove_all(lab);
  std::filesystem::remove_all(other);
  ASSERT_TRUE(create_certificates(lab, {"localhost", "127.0.0.1"}));
  ASSERT_TRUE(create_certificates(other, {"localhost", "127.0.0.1"}));
  const Child agent(lab);
  const std::string ours = "&certificates=" + lab;
  EXPECT_EQ(measure(*open(agent.address, ours), "operation=WRITE,message_bytes=64").outcome,
            Outcome::kMeasured);
  for (const std::string& wrong : {std::string(), "&certificates=" + other}) {
    const Observation seen =
        measure(*open(agent.address, wrong), "operation=WRITE,message_bytes=64");
    EXPECT_EQ(seen.outcome, Outcome::kFailed) << "with '" << wrong << "'";
  }
}

// Claim:  negative tests work against a peer on another host as they do in one process.
// Oracle: the fault table.
TEST(RemotePeer, SeesTheSameFaults) {
  const Child agent;
  const auto target = open(agent.address);
  for (const FaultRow& row : fault_table()) {
    const Observation seen = measure(*target, fmt::format("fault={},operation={},transport={}",
                                                          row.name, row.operation, row.transport));
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << row.name << ": " << seen.reason;
    EXPECT_EQ(seen.value("status_as_expected_share"), 1.0)
        << row.name << " " << row.operation << ": " << seen.environment.at("observed_status");
  }
}

// Claim:  however many QPs there are, a run takes at most 4 messages to the agent.
// Oracle: the agent's own count. Method: 256 QPs; 4096 when GREYNIC_NIGHTLY is set.
TEST(RemotePeer, ConnectsManyQpsInFourMessages) {
  const int qps = std::getenv("GREYNIC_NIGHTLY") == nullptr ? 256 : 4096;
  const auto agent = Agent::start({.listen = "127.0.0.1:0", .device = "rxe1"});
  ASSERT_TRUE(agent) << agent.error().message;
  std::atomic<bool> stop = false;
  std::thread server([&] { (*agent)->serve(stop); });
  const Observation seen =
      measure(*open((*agent)->address(), "", "20s"),
              fmt::format("operation=WRITE,message_bytes=64,mr_bytes=1048576,qp_count={},"
                          "qps_per_cq={},send_queue_depth=1,receive_queue_depth=1",
                          qps, qps),
              std::chrono::milliseconds(qps * 4));
  stop = true;
  server.join();
  EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_LE((*agent)->calls(), 4U);
  EXPECT_GE((*agent)->calls(), 1U);
}

// Claim:  a peer that dies or hangs is recorded, and the runs after it go on.
TEST(RemotePeer, MayDieAndHang) {
  auto agent = std::make_unique<Child>();
  const auto target = open(agent->address);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    agent->signal(SIGKILL);
  });
  const Observation died =
      measure(*target, "operation=SEND,message_bytes=64", std::chrono::milliseconds(4000));
  killer.join();
  EXPECT_TRUE(died.outcome == Outcome::kFailed || died.outcome == Outcome::kTimedOut);
  EXPECT_FALSE(died.reason.empty());
  const Observation away = measure(*target, "operation=WRITE,message_bytes=64");
  EXPECT_EQ(away.outcome, Outcome::kFailed);
  EXPECT_NE(away.reason.find("greynic agent"), std::string::npos) << away.reason;

  const Child hanging;
  const auto second = open(hanging.address);
  EXPECT_EQ(measure(*second, "operation=WRITE,message_bytes=64").outcome, Outcome::kMeasured);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    hanging.signal(SIGSTOP);
  });
  const Observation hung =
      measure(*second, "operation=WRITE,message_bytes=64", std::chrono::milliseconds(2500));
  stopper.join();
  EXPECT_EQ(hung.outcome, Outcome::kFailed);
  EXPECT_NE(hung.reason.find("did not answer"), std::string::npos) << hung.reason;
  hanging.signal(SIGCONT);
  EXPECT_EQ(measure(*second, "operation=WRITE,message_bytes=64").outcome, Outcome::kMeasured);
}

}  // namespace
}  // namespace greynic::agent

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--serve") {
    const auto agent = greynic::agent::Agent::start(
        {.listen = "127.0.0.1:0", .certificates = argv[2], .device = "rxe1"});
    if (!agent) {
      fmt::print(stderr, "{}\n", agent.error().message);
      return 1;
    }
    fmt::print("{}\n", (*agent)->address());
    std::fflush(stdout);
    const std::atomic<bool> never = false;
    (*agent)->serve(never);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
