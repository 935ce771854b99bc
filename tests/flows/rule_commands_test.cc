#include "greynic/flows/rule_commands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/named_headers.h"
#include "greynic/flows/flow_driver.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/os/program.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"

namespace greynic::flows {
namespace {

using F = MatchField;

std::string commands(const FlowRule& rule, const std::string& form) {
  const Layout layout{{{rule.table, {{rule.match.mask(), 0, {rule}}}}}};
  const auto read = command_form(form);
  EXPECT_TRUE(read) << form;
  const auto text = rule_commands(layout, *read);
  if (!text) return text.error().message;
  return text->substr(text->find('\n') + 1);  // the first line says how to run them
}

FlowRule web_rule() {
  FlowRule rule;
  rule.match.set(F::kEtherType, 0x0800);
  rule.match.set(F::kIpv4Dst, 0x0a010200, 0xffffff00);
  rule.match.set(F::kIpProtocol, 6);
  rule.match.set(F::kL4DstPort, 1024, 0xfc00);
  rule.actions = {Action::jump(7)};
  return rule;
}

// Oracle: the programs' manuals (tc-flower(8), ovs-fields(7), testpmd's guide), read by hand.
TEST(RuleCommands, SayARuleAsEachProgramDoes) {
  EXPECT_EQ(commands(web_rule(), "ovs"),
            "cookie=0x1,table=0,priority=65535,eth_type=0x800,nw_dst=10.1.2.0/255.255.255.0,"
            "nw_proto=6,tp_dst=1024/64512,actions=goto_table:7\n");
  EXPECT_EQ(commands(web_rule(), "tc:eth7"),
            "filter add dev eth7 ingress chain 0 protocol ip prio 1 flower ip_proto 0x6 "
            "dst_ip 10.1.2.0/24 dst_port 1024/64512 action goto chain 7\n");
  EXPECT_EQ(commands(web_rule(), "rte_flow:3"),
            "flow create 3 group 0 priority 0 ingress pattern eth / ipv4 dst spec 10.1.2.0 "
            "dst mask 255.255.255.0 / tcp dst spec 1024 dst mask 64512 / end actions jump group 7 "
            "/ end\n");
}

// Oracle: as above. Hardware sends the rest to software, and entries of hot flows may leave.
TEST(RuleCommands, TellHardwareFromTheSlowPath) {
  FlowRule hot = web_rule();
  hot.actions = {Action::forward("4")};
  FlowRule rest;
  rest.priority = 1;
  rest.match.set(F::kEtherType, 0x0800);
  rest.actions = {Action::jump(1)};
  FlowRule slow = hot;
  slow.table = 1;
  const Layout layout{{{0, {{hot.match.mask(), 0, {hot}, 10}, {rest.match.mask(), 1, {rest}}}},
                       {1, {{slow.match.mask(), 0, {slow}}}, true}}};
  const auto written = [&](const std::string& form) {
    const auto text = rule_commands(layout, command_form(form).value());
    return text ? *text : text.error().message;
  };
  const std::string ovs = written("ovs");
  EXPECT_NE(ovs.find("\nidle_timeout=10,cookie=0x1,table=0,priority=65535"), std::string::npos)
      << ovs;
  EXPECT_NE(ovs.find("\ncookie=0x2,table=0,priority=65534"), std::string::npos) << ovs;
  EXPECT_NE(ovs.find("\ncookie=0x3,table=1,"), std::string::npos) << ovs;
  const std::string tc = written("tc:eth7");
  EXPECT_NE(tc.find("chain 0 protocol ip prio 1 flower skip_sw ip_proto"), std::string::npos) << tc;
  EXPECT_NE(tc.find("chain 0 protocol ip prio 2 flower skip_sw action goto chain 1"),
            std::string::npos)
      << tc;
  EXPECT_NE(tc.find("chain 1 protocol ip prio 1 flower skip_hw ip_proto"), std::string::npos) << tc;
  const std::string rte = written("rte_flow:3");
  EXPECT_NE(rte.find("rules of the layout's table 1"), std::string::npos) << rte;
  EXPECT_NE(rte.find("end actions age timeout 10 / represented_port ethdev_port_id 4 / end"),
            std::string::npos)
      << rte;
  EXPECT_NE(rte.find("priority 1 ingress pattern eth / ipv4 / end actions queue index 0 / end"),
            std::string::npos)
      << rte;
  EXPECT_EQ(rte.find("group 1"), std::string::npos) << rte;
}

TEST(RuleCommands, SayTagsBeforeWhatIsBehindThem) {
  FlowRule rule;
  rule.table = 2;
  rule.match.set(F::kEtherType, 0x86dd);
  rule.match.set(F::kVlanPresent, 1);
  rule.match.set(F::kVlanId, 5);
  rule.match.set(F::kIpDscp, 8);
  rule.actions = {{.kind = ActionKind::kPopVlan}, Action::forward("3")};
  EXPECT_EQ(commands(rule, "tc:eth7"),
            "filter add dev eth7 ingress chain 2 protocol 802.1Q prio 1 flower vlan_id 5 "
            "vlan_ethtype ipv6 ip_tos 0x20/0xfc action vlan pop pipe action mirred egress redirect "
            "dev 3\n");
  EXPECT_EQ(commands(rule, "rte_flow"),
            "flow create 0 group 2 priority 0 ingress pattern eth / vlan vid is 5 / ipv6 tc spec "
            "0x20 tc mask 0xfc / end actions of_pop_vlan / represented_port ethdev_port_id 3 / "
            "end\n");
}

// Claim:  what a program has no word for is refused by name, never left out.
TEST(RuleCommands, RefuseByName) {
  FlowRule rule = web_rule();
  rule.match.set(F::kIpv4Src, 1, 0x0000ff01);
  EXPECT_NE(commands(rule, "tc:eth7").find("ipv4_src: it takes prefixes only"), std::string::npos);
  rule = web_rule();
  rule.match.set(F::kReg3, 1);
  EXPECT_NE(commands(rule, "tc:eth7").find("reg3"), std::string::npos);
  EXPECT_NE(commands(rule, "rte_flow").find("reg3"), std::string::npos);
  rule = web_rule();
  rule.actions = {Action::other("learn(table=3)")};
  EXPECT_NE(commands(rule, "tc:eth7").find("learn(table=3)"), std::string::npos);
  EXPECT_NE(commands(rule, "rte_flow").find("learn(table=3)"), std::string::npos);
  rule.actions = {Action::forward("p1")};
  EXPECT_NE(commands(rule, "rte_flow").find("numbers"), std::string::npos);
  rule = web_rule();
  rule.table = 254;
  EXPECT_NE(commands(rule, "ovs").find("table 254 is beyond"), std::string::npos);
}

// Claim:  names from a rule file cannot become commands of their own.
TEST(RuleCommands, TakeNoNameThatEndsAWord) {
  for (const char* name : {"", "p 1", "p1\nfilter del dev eth0 ingress", "p\"", "p;x", "#p"}) {
    FlowRule rule = web_rule();
    rule.actions = {Action::forward(name)};
    for (const char* form : {"ovs", "tc:eth7", "rte_flow"}) {
      EXPECT_NE(commands(rule, form).find("no word that could stand"), std::string::npos) << name;
    }
  }
  FlowRule rule = web_rule();
  rule.actions = {Action::other("note:00\npriority=1,actions=drop")};
  EXPECT_NE(commands(rule, "ovs").find("no word that could stand"), std::string::npos);
}

TEST(RuleCommands, KnowTheirForms) {
  EXPECT_EQ(command_form("ovs:br7")->device, "br7");
  EXPECT_EQ(command_form("rte_flow")->device, "0");
  for (const char* wrong :
       {"", "tc", "tc:", "tc:a b", "tc:a;b", "ovs:br0\nx", "rte_flow:eth0", "p4"}) {
    const auto form = command_form(wrong);
    ASSERT_FALSE(form) << wrong;
    EXPECT_EQ(form.error().code, ErrorCode::kBadInput);
  }
}

// Claim:  the kernel's one protocol for each preference is kept where a matcher has several.
TEST(RuleCommands, GiveEachProtocolOfAMatcherAPreference) {
  LayoutTable table;
  Matcher& matcher = table.matchers.emplace_back();
  for (const unsigned type : {0x0800U, 0x0806U, 0x0800U}) {
    FlowRule rule;
    rule.match.set(F::kEtherType, type);
    rule.match.set(F::kEthernetDst, matcher.rules.size());
    rule.actions = {Action::drop()};
    matcher.mask = rule.match.mask();
    matcher.rules.push_back(rule);
  }
  FlowRule last;
  last.match.set(F::kEtherType, 0x0806);
  last.actions = {Action::drop()};
  table.matchers.push_back({last.match.mask(), 1, {last}});
  const auto text = rule_commands(Layout{{table}}, *command_form("tc:e"));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("protocol ip prio 1 flower dst_mac 00:00:00:00:00:00"), std::string::npos);
  EXPECT_NE(text->find("protocol arp prio 2 flower dst_mac 00:00:00:00:00:01"), std::string::npos);
  EXPECT_NE(text->find("protocol ip prio 1 flower dst_mac 00:00:00:00:00:02"), std::string::npos);
  EXPECT_NE(text->find("protocol arp prio 3 flower action"), std::string::npos) << *text;
}

// Claim:  a layout whose cuts took bits out of addresses is said in prefixes, and means the same.
// Oracle: the verifier, and the words of every filter.
TEST(RuleCommands, SayCutAddressesAsPrefixesToTc) {
  const auto filters = rules::made_filters({"acl", 300, 3});
  const auto set = rules::parse_rules(*filters, "made", rules::Format::kClassbench);
  ASSERT_TRUE(set) << set.error().message;
  optimizer::OptimizeOptions options;
  options.max_growth = 2.0;
  const auto made = optimizer::optimize(*set, rules::uniform_traffic(*set, 1), options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GT(made->layout.tables.size(), 20U);
  const auto verdict = verify::verify(*set, with_prefixes(made->layout));
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
  const auto text = rule_commands(made->layout, *command_form("tc:eth7"));
  ASSERT_TRUE(text) << text.error().message;
}

// Claim:  the commands for Open vSwitch carry a layout of the optimizer whole.
// Oracle: ovs-ofctl parses them; the reader of its format and the verifier find no table changed.
TEST(RuleCommands, CarryALayoutToOpenVSwitch) {
  const auto filters = rules::made_filters({"fw", 200, 3});
  auto set = rules::parse_rules(*filters, "made", rules::Format::kClassbench);
  ASSERT_TRUE(set) << set.error().message;
  // ClassBench's rules set marks, which the reader keeps as a foreign word; it understands ports.
  for (FlowRule& rule : set->rules) {
    rule.actions = {Action::forward(std::to_string(1 + rule.priority % 40))};
  }
  optimizer::OptimizeOptions options;
  options.limits = limits_of(CommandForm::Program::kOvs);
  const auto made = optimizer::optimize(*set, rules::uniform_traffic(*set, 1), options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GT(made->layout.tables.size(), 2U);
  const auto text = rule_commands(made->layout, *command_form("ovs"));
  ASSERT_TRUE(text) << text.error().message;

  const auto read = rules::parse_rules(*text, "commands", rules::Format::kOpenflow);
  ASSERT_TRUE(read) << read.error().message;
  const auto same = verify::verify(*read, with_headers(made->layout));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_TRUE(same->equivalent);

  if (os::find_program("ovs-ofctl").empty()) {
    GTEST_SKIP() << "ovs-ofctl is not installed; apt-get install openvswitch-common";
  }
  std::string path = "/tmp/greynic-commands-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << *text;
  const auto parsed = os::run({.words = {"ovs-ofctl", "parse-flows", path}});
  std::filesystem::remove(path);
  EXPECT_TRUE(parsed) << parsed.error().message;
}

// Claim:  a range is said by its first and last value to testpmd, with the headers that it needs; a
//         range of all ports says nothing, and needs none; the others get it written out.
// Oracle: written by hand; 1024 to 65535 is six prefixes.
TEST(RuleCommands, SayRangesWhereTheProgramHasThem) {
  FlowRule narrow;
  narrow.match.set(MatchField::kEtherType, 0x0800);
  narrow.match.set_range(MatchField::kL4DstPort, 1024, 65535);
  narrow.actions = {Action::forward("1")};
  FlowRule wide = narrow;
  wide.match.set(MatchField::kIpProtocol, 17);
  wide.match.set_range(MatchField::kL4DstPort, 0, 65535);
  Layout layout;
  layout.tables.push_back({0, {{narrow.match.mask(), 0, {narrow}}}});
  const auto text = rule_commands(layout, *command_form("rte_flow"));
  ASSERT_TRUE(text) << text.error().message;
  for (const std::string protocol : {"tcp", "udp", "sctp"}) {
    const std::string words = "ipv4 / " + protocol +
                              " dst spec 1024 dst last 65535 dst mask 65535 / end actions "
                              "represented_port ethdev_port_id 1 / end";
    EXPECT_NE(text->find(words), std::string::npos) << *text;
  }
  layout.tables[0].matchers = {{wide.match.mask(), 0, {wide}}};
  const auto all = rule_commands(layout, *command_form("rte_flow"));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_NE(all->find("udp dst spec 0 dst last 65535"), std::string::npos) << *all;

  layout.tables[0].matchers = {{narrow.match.mask(), 0, {narrow}}};
  layout.tables[0].matchers[0].rules[0].match.set(MatchField::kIpProtocol, 6);
  layout.tables[0].matchers[0].mask = layout.tables[0].matchers[0].rules[0].match.mask();
  const auto ovs = rule_commands(layout, *command_form("ovs"));
  ASSERT_TRUE(ovs) << ovs.error().message;
  EXPECT_EQ(std::count(ovs->begin(), ovs->end(), '\n'), 1 + 6) << *ovs;
}

}  // namespace
}  // namespace greynic::flows
