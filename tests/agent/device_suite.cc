// Runs inside the small machine: an agent on rxe1 in a process of its own, driven from rxe0.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "greynic/agent/agent.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"

namespace greynic::agent {
namespace {

/// An agent in a child process, so that it can be killed and stopped.
class Child {
 public:
  explicit Child(const std::string& certificates = "") {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      // A fresh process: gRPC does not survive a fork after it has been used.
      close(ends[0]);
      dup2(ends[1], 1);
      execl("/proc/self/exe", "agent", "--serve", certificates.c_str(), nullptr);
      _exit(127);
    }
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
  pid_t pid_;
};

std::unique_ptr<target::Target> open(const std::string& address, const std::string& more = "") {
  const auto specs = target::parse_specs("verbs:rxe0?stall=2s&peer=" + address + more);
  auto target = verbs::verbs_kind(remote_peer).open(specs->front());
  EXPECT_TRUE(target) << (target ? "" : target.error().message);
  return target ? std::move(*target) : nullptr;
}

Observation measure(target::Target& target, const std::string& configuration,
                    std::chrono::milliseconds duration = std::chrono::milliseconds(300)) {
  const auto seen = target::measure_one(
      target,
      {.configuration = *parse_configuration(configuration), .duration = duration, .seed = 3});
  EXPECT_TRUE(seen) << (seen ? "" : seen.error().message);
  return seen.value_or(Observation{});
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
    const Observation seen = measure(*target, configuration);
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << configuration << ": " << seen.reason;
  }
  const auto pings = open(agent.address, "&mode=latency");
  EXPECT_EQ(measure(*pings, "operation=WRITE,message_bytes=64").outcome, Outcome::kMeasured);
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
