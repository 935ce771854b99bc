#include <gtest/gtest.h>

#include <filesystem>

#include "killed_changes.h"
#include "ovs/ovs_driver.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

// Claim:  a process that is killed in the middle of a change leaves a switch that greynic puts
//         back: the next opening finds the rules of before, all of them, or the change finished.
// Oracle: the rules that the test installed before.
// Method: 20 times a child that changes 3,000 rules is killed at a random moment of it; recover()
//         then runs as at every opening.
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
  kill_changes(driver, before, wanted, 11);
}

}  // namespace
}  // namespace greynic::flows
