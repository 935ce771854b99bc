/// Rogue clients and rogue agents: whatever one end says, the other goes on serving others, and
/// ends when it is asked to. Over the device in memory (tests/verbs/fake_device/fake_rdma.h).

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "greynic/target/interrupt.h"
#include "rogue/child_agent.h"
#include "rogue/honest_caller.h"
#include "rogue/rogue_agent.h"
#include "rogue/rogue_client.h"

namespace greynic::agent {
namespace {

/// What SIGTERM may take. The promise is 2 s; the rest is for a machine that gives us no processor.
constexpr std::chrono::seconds kEnd{10};

class RogueClients : public testing::TestWithParam<std::size_t> {};

// Claim:  after each lie an honest caller is measured, while the liar is still connected; and while
//         the lie is told anew, SIGTERM ends the agent.
TEST_P(RogueClients, CostOthersNothing) {
  const ClientLie& lie = client_lies().at(GetParam());
  ChildAgent agent;
  int status = 0;
  std::string reason;
  {
    RogueClient rogue(agent.address());
    lie.tell(rogue);
    // A run that nobody cares for goes with its lease or its caller.
    EXPECT_TRUE(agent.measures(reason)) << lie.name << ": " << reason;
  }
  EXPECT_TRUE(agent.measures(reason)) << lie.name << ", afterwards: " << reason;
  RogueClient rogue(agent.address());
  std::thread telling([&] { lie.tell(rogue); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto took = agent.end(status);
  telling.join();
  EXPECT_LT(took, kEnd) << lie.name;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << lie.name << ": " << status;
  RecordProperty("milliseconds_to_end", static_cast<int>(took.count()));
}

INSTANTIATE_TEST_SUITE_P(Lies, RogueClients, testing::Range<std::size_t>(0, client_lies().size()),
                         [](const auto& lie) { return client_lies().at(lie.param).name; });

class RogueAgents : public testing::TestWithParam<std::size_t> {};

// Claim:  a client that an agent lies to says so as the outcome of that run, in words that are safe
//         to print, and measures with an honest agent as before.
TEST_P(RogueAgents, CostOneRun) {
  const AgentLie& lie = agent_lies().at(GetParam());
  verbs::fake_rdma() = {};
  const auto honest = Agent::start({.listen = "127.0.0.1:0", .device = verbs::kFakeDevice});
  ASSERT_TRUE(honest) << honest.error().message;
  const std::string how =
      lie.both_ways ? "operation=SEND,direction=bidirectional" : "operation=SEND";
  {
    const RogueAgent rogue(lie, (*honest)->address());
    const Observation seen = measured_by(rogue.address(), "", how);
    if (!lie.measured) EXPECT_NE(seen.outcome, Outcome::kMeasured) << lie.name;
    EXPECT_NE(seen.outcome, Outcome::kNotRun) << lie.name;
    EXPECT_LT(seen.reason.size(), 5000U) << lie.name;
    const auto safe = [](const std::string& text) {
      return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
    };
    EXPECT_TRUE(safe(seen.reason)) << lie.name << ": " << seen.reason;
    for (const auto& [name, value] : seen.counters_after) {
      EXPECT_TRUE(safe(name) && name.size() < 1000) << lie.name;
    }
  }
  const Observation after = measured_by((*honest)->address());
  EXPECT_EQ(after.outcome, Outcome::kMeasured) << lie.name << ": " << after.reason;
}

INSTANTIATE_TEST_SUITE_P(Lies, RogueAgents, testing::Range<std::size_t>(0, agent_lies().size()),
                         [](const auto& lie) { return agent_lies().at(lie.param).name; });

// Claim:  there are fifty lies of each, and none stands twice.
TEST(Rogues, TellFiftyLiesEach) {
  std::set<std::string> names;
  for (const ClientLie& lie : client_lies()) EXPECT_TRUE(names.insert(lie.name).second) << lie.name;
  EXPECT_GE(names.size(), 50U);
  names.clear();
  for (const AgentLie& lie : agent_lies()) EXPECT_TRUE(names.insert(lie.name).second) << lie.name;
  EXPECT_GE(names.size(), 50U);
}

// Claim:  a client that waits for an agent's answer in vain ends when it is asked to.
// Oracle: the agent answers for none of the three calls until its caller has gone.
TEST(RogueAgents, ThatNeverAnswerHoldNobody) {
  for (const char silent : {'O', 'C', 'F'}) {
    verbs::fake_rdma() = {};
    const auto honest = Agent::start({.listen = "127.0.0.1:0", .device = verbs::kFakeDevice});
    ASSERT_TRUE(honest) << honest.error().message;
    const RogueAgent rogue({.name = "Silence", .silent = silent}, (*honest)->address());
    const auto target = target_at(rogue.address());
    const target::InterruptGuard guard;
    std::chrono::steady_clock::time_point asked;
    std::thread asking([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      asked = std::chrono::steady_clock::now();
      raise(SIGTERM);
    });
    (void)target::measure_one(*target, short_run("operation=SEND"));
    asking.join();
    const auto took = std::chrono::steady_clock::now() - asked;
    EXPECT_LT(took, kEnd) << silent;
  }
}

// Claim:  no client can end another's run, whatever sessions it tries: those near its own are not
//         the other's. (In a lab both show certificates; here neither has one.)
TEST(Sessions, OfOthersAreNotGuessed) {
  ChildAgent agent;
  RogueClient first(agent.address());
  ASSERT_NE(first.open().session(), 0U);
  RogueClient other(agent.address());
  for (std::uint64_t near = 1; near <= 100; ++near) {
    other.abandon(near);
    other.abandon(first.session() + near);
    other.abandon(first.session() - near);
  }
  EXPECT_TRUE(first.connect().fault().message().empty()) << "its run is still there";
}

}  // namespace
}  // namespace greynic::agent

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--serve") {
    return greynic::agent::serve_as_child(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
