#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "ovs_driver.h"
#include "private_ovs.h"
#include "random_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;

RuleSet numbered_rules(std::uint32_t count, std::uint32_t first) {
  RuleSet set;
  for (std::uint32_t i = 0; i < count; ++i) {
    FlowRule rule;
    rule.match.set(F::kEtherType, 0x0800);
    rule.match.set(F::kIpv4Dst, first + i);
    rule.actions = {Action::drop()};
    set.rules.push_back(std::move(rule));
  }
  return set;
}

// Claim:  a process that is killed in the middle of a change leaves a switch that greynic puts
// back:
//         the next opening finds the rules of before, all of them, or the change finished.
// Oracle: the rules that the test installed before.
// Method: 20 times a child changes 3,000 rules and is killed at a random moment of it; recover()
// then
//         runs as at every opening.
TEST(Crash, LosesNoRulesWhenTheProcessIsKilledInTheMiddle) {
  GREYNIC_NEEDS_OVS();
  auto ovs = PrivateSwitch::start({});
  ASSERT_TRUE(ovs.has_value()) << ovs.error().message;
  PrivateSwitch& there = **ovs;
  const std::string journals = there.folder() + "/journals";
  const auto driver = [&] {
    return std::make_unique<OvsDriver>(
        there.folder() + "/br0.mgmt",
        []() -> Result<PortNumbers> {
          return PortNumbers{{"p1", 1}};
        },
        Journal::on_disk("ovs:test", journals));
  };
  const RuleSet before = numbered_rules(500, 0x0a000000);
  const RuleSet wanted = numbered_rules(3000, 0x14000000);
  ASSERT_TRUE(driver()->apply(before).has_value());
  std::filesystem::remove_all(journals);  // the rules of before are somebody else's
  const std::uint64_t seed = seed_or(11);
  std::mt19937_64 random(seed);
  int interrupted = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setpgid(0, 0);
      _exit(driver()->apply(wanted).has_value() ? 0 : 1);
    }
    setpgid(child, child);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    kill(-child, SIGKILL);  // with the ovs-ofctl that it may be running
    int status = 0;
    waitpid(child, &status, 0);
    auto reopened = driver();
    const auto recovered = reopened->recover();
    ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
    const auto rules = reopened->list();
    ASSERT_TRUE(rules.has_value()) << rules.error().message;
    if (WIFSIGNALED(status)) ++interrupted;
    const bool old = rules->rules == before.rules;
    const bool finished = rules->rules == wanted.rules;
    ASSERT_TRUE(old || finished) << "round " << round << " of seed " << seed << " left "
                                 << rules->rules.size() << " rules";
    ASSERT_TRUE(reopened->roll_back().has_value());
    ASSERT_EQ(reopened->list()->rules, before.rules) << "round " << round;
  }
  EXPECT_GE(interrupted, 10) << "too few rounds were cut short to mean anything";
}

}  // namespace
}  // namespace greynic::flows
