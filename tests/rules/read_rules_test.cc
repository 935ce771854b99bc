#include "greynic/rules/read_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "greynic/files/json_file.h"

namespace greynic::rules {
namespace {

using F = MatchField;

RuleSet read(std::string_view text, std::optional<Format> format = std::nullopt) {
  auto set = parse_rules(text, "input", format);
  EXPECT_TRUE(set) << set.error().message;
  return set ? *set : RuleSet{};
}

Match match(std::initializer_list<FieldMatch> parts) {
  Match result;
  for (const FieldMatch& part : parts) result.set(part.field, part.value, part.bits);
  return result;
}

std::string shared(const std::string& name) {
  return std::string(GREYNIC_SOURCE_DIR) + "/../shared/data/rules/" + name;
}

TEST(Classbench, ReadsEveryColumn) {
  const RuleSet set =
      read("@10.1.2.0/24\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\t0x1000/0x1200\t\n");
  ASSERT_EQ(set.rules.size(), 1U);
  EXPECT_EQ(set.rules[0].match, match({{F::kIpv4Src, 0x0a010200, 0xffffff00},
                                       {F::kIpProtocol, 6, 0xff},
                                       {F::kL4DstPort, 80, 0xffff},
                                       {F::kTcpFlags, 0x10, 0x12}}));  // ACK set, SYN not
  EXPECT_EQ(set.rules[0].from, std::vector<std::uint32_t>{0});
}

// Claim:  what iproute2 6.1 prints is read with its masks: hexadecimal, beside the value or behind
//         a slash, with and without 0x.
// Oracle: the filters that were added, in decimal.
TEST(TcFilter, ReadsTheMasksThatIprouteWrites) {
  const auto read = parse_rules(
      R"([{"protocol":"ip","pref":1,"kind":"flower","chain":0,"options":{"keys":{"eth_type":"ipv4",
      "ip_proto":"tcp","tcp_flags":"0x2/12","ip_tos":40,"ip_tos_mask":"f8",
      "ip_flags":{"frag":true,"firstfrag":false}}}},
      {"protocol":"arp","pref":2,"kind":"flower","chain":0,"options":{"keys":{"eth_type":"arp",
      "arp_op":"reply"}}},
      {"protocol":"802.1Q","pref":3,"kind":"flower","chain":0,"options":{"keys":{"eth_type":"ipv4",
      "ct_mark":4608,"ct_mark_mask":"ff00"}}}])",
      "tc");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(to_string(read->rules[0].match),
            "ether_type=0x800,ip_protocol=6,ip_dscp=10/62,ip_fragment=3,tcp_flags=0x2/0x12");
  EXPECT_EQ(to_string(read->rules[1].match), "ether_type=0x806,arp_operation=2");
  EXPECT_EQ(to_string(read->rules[2].match),
            "ether_type=0x800,vlan_present=1,ct_mark=0x1200/0xff00");
}

// Claim:  of an ICMP filter the flags are type and code: acl5 writes 0x0800/0xff00 for echo.
// Oracle: the byte order of the ICMP header.
TEST(Classbench, ReadsIcmpTypeAndCode) {
  const auto read = parse_rules(
      "@1.2.3.0/24 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xFF 0x0b01/0xffff\n"
      "@1.2.3.0/24 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xFF 0x0800/0xff00\n",
      "filters");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(to_string(read->rules[0].match),
            "ipv4_src=1.2.3.0/24,ip_protocol=1,icmp_type=11,icmp_code=1");
  EXPECT_EQ(to_string(read->rules[1].match), "ipv4_src=1.2.3.0/24,ip_protocol=1,icmp_type=8");
}

// Claim:  the prefixes of a range are exactly its ports, and as few as can be.
// Oracle: every port tried; the known worst case 1..65534 takes 30 prefixes.
TEST(Classbench, ExpandsPortRangesExactly) {
  const auto ports_of = [](unsigned low, unsigned high) {
    return read("@0.0.0.0/0 0.0.0.0/0 0 : 65535 " + std::to_string(low) + " : " +
                std::to_string(high) + " 0x00/0x00\n");
  };
  EXPECT_EQ(ports_of(1, 65534).rules.size(), 30U);
  EXPECT_EQ(ports_of(0, 65535).rules.size(), 1U);
  for (const auto& [low, high] : {std::pair{1U, 65534U}, {1024U, 65535U}, {7U, 7U}, {99U, 1000U}}) {
    const RuleSet set = ports_of(low, high);
    for (unsigned port = 0; port < 65536; ++port) {
      Packet packet;
      packet.set(F::kL4DstPort, port);
      const auto hits = std::count_if(set.rules.begin(), set.rules.end(),
                                      [&](const auto& rule) { return rule.match.matches(packet); });
      ASSERT_EQ(hits, port >= low && port <= high ? 1 : 0) << low << ".." << high << " " << port;
    }
  }
}

// Claim:  filters whose ranges would become more rules than memory should hold are refused by the line
//         at which they do.
// Oracle: two ranges of 1..65534 make 30 x 30 rules of a line.
TEST(Classbench, RefusesRangesThatMakeTooManyRules) {
  if (std::getenv("GREYNIC_NIGHTLY") == nullptr) {
    GTEST_SKIP() << "takes 700 MB of memory; set GREYNIC_NIGHTLY=1";
  }
  const std::size_t lines = 1'000'000 / 900 + 1;
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    text += "@0.0.0.0/0 0.0.0.0/0 1 : 65534 1 : 65534 0x06/0xFF\n";
  }
  const auto refused = parse_rules(text, "wide.rules", Format::kClassbench);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooBig);
  EXPECT_NE(refused.error().message.find("wide.rules: line " + std::to_string(lines)),
            std::string::npos)
      << refused.error().message;
}

TEST(Classbench, GivesTheFirstLineTheHighestPriority) {
  const RuleSet set = read(
      "# two filters\n"
      "1.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF\r\n"
      "0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00\r\n");
  ASSERT_EQ(set.rules.size(), 2U);
  EXPECT_LT(set.rules[0].priority, set.rules[1].priority);
  EXPECT_EQ(set.rules[1].from, std::vector<std::uint32_t>{2});
  EXPECT_NE(set.rules[0].actions, set.rules[1].actions);  // each line decides for itself
}

Action set_bits(MatchField field, U128 value, U128 bits) {
  return {.kind = ActionKind::kSetField, .field = field, .value = value, .bits = bits};
}

TEST(Openflow, ReadsMatchesPrioritiesTablesAndActions) {
  const RuleSet set = read(
      "OFPST_FLOW reply (OF1.5) (xid=0x2):\n"
      " cookie=0x1, duration=3.2s, table=8, n_packets=30, n_bytes=9, "
      "priority=100,tcp,reg15=0x1/0xff,nw_dst=10.0.0.0/255.0.255.0,tp_dst=0x1540/0xfffe "
      "actions=set_field:0x3->reg13,resubmit(,9)\n"
      " table=8, n_packets=10, send_flow_rem check_overlap idle_age=3, priority=0 actions=drop\n"
      " ct_state=+est-new+trk,vlan_tci=0x1000/0x1000 actions=output:7\n"
      " table=9, xxreg0=0x1/0x1 actions=resubmit(,10),output:2\n");
  ASSERT_EQ(set.rules.size(), 4U);
  EXPECT_EQ(set.rules[0].match, match({{F::kEtherType, 0x0800, 0xffff},
                                       {F::kIpv4Dst, 0x0a000000, 0xff00ff00},
                                       {F::kIpProtocol, 6, 0xff},
                                       {F::kL4DstPort, 0x1540, 0xfffe},
                                       {F::kReg15, 1, 0xff}}));
  EXPECT_EQ(set.rules[0].table, 8U);
  EXPECT_EQ(set.rules[0].priority, 65435U);  // larger wins there, smaller here
  EXPECT_DOUBLE_EQ(set.rules[0].weight, 0.75);
  EXPECT_EQ(set.rules[0].actions,
            (std::vector{set_bits(F::kReg13, 3, 0xffffffff), Action::jump(9)}));
  EXPECT_EQ(set.rules[1].actions, std::vector{Action::drop()});
  EXPECT_EQ(set.rules[2].match, match({{F::kCtState, 0x22, 0x23}, {F::kVlanPresent, 1, 1}}));
  EXPECT_EQ(set.rules[2].priority, 65535U - 32768U);
  EXPECT_EQ(set.rules[2].actions, std::vector{Action::forward("7")});
  // What follows a resubmit runs after it returns, so it is no plain jump.
  EXPECT_EQ(set.rules[3].actions,
            (std::vector{Action::other("resubmit(,10)"), Action::forward("2")}));
  EXPECT_EQ(set.rules[3].match, match({{F::kReg3, 1, 1}}));
}

// Claim:  what writes registers or metadata is known bit by bit, also through fields that lie over several registers; all
//         else is kept as text.
// Oracle: ovs-fields(7): xreg0 is reg0 and reg1, xxreg0 reg0 to reg3, the first of them the highest.
TEST(Openflow, KnowsWhatWritesRegisters) {
  const auto actions = [](const std::string& text) {
    const RuleSet set = read(" table=8, priority=1 actions=" + text + ",resubmit(,9)\n");
    auto all = set.rules.front().actions;
    all.pop_back();
    return all;
  };
  using Actions = std::vector<Action>;
  EXPECT_EQ(actions("set_field:0x5/0xff->reg0"), (Actions{set_bits(F::kReg0, 5, 0xff)}));
  EXPECT_EQ(actions("set_field:0->metadata"),
            (Actions{set_bits(F::kMetadata, 0, ~std::uint64_t{0})}));
  EXPECT_EQ(
      actions("set_field:0x10000000000000000000000000000/0x10000000000000000000000000000->xxreg0"),
      (Actions{set_bits(F::kReg0, 0x10000, 0x10000)}));
  EXPECT_EQ(actions("set_field:0x700000002/0xff000000ff->xreg4"),
            (Actions{set_bits(F::kReg8, 7, 0xff), set_bits(F::kReg9, 2, 0xff)}));
  EXPECT_EQ(actions("set_field:0x1->xxreg3"),
            (Actions{set_bits(F::kReg12, 0, 0xffffffff), set_bits(F::kReg13, 0, 0xffffffff),
                     set_bits(F::kReg14, 0, 0xffffffff), set_bits(F::kReg15, 1, 0xffffffff)}));
  for (const std::string text :
       {"set_field:1->reg16", "set_field:1->xxreg4", "set_field:1->xreg8",
        "set_field:0x100000000->reg1", "set_field:fa:16:3e:00:00:01->eth_dst",
        "set_field:1->tun_id", "set_field:x->reg1", "set_field:1/0->reg1", "set_field:1->reg"}) {
    EXPECT_EQ(actions(text), (Actions{Action::other(text)}));
  }
}

// Claim:  multiplied-out conjunctions treat packets as ovs-fields(7) says.
// Oracle: the definition, packet by packet: a rule of each clause must match.
TEST(Openflow, ResolvesConjunctions) {
  const RuleSet set = read(
      " priority=9,nw_proto=1 actions=conjunction(5,1/2)\n"
      " priority=9,nw_proto=2 actions=conjunction(5,1/2),conjunction(6,2/2)\n"
      " priority=9,tp_dst=7 actions=conjunction(5,2/2)\n"
      " priority=9,tp_dst=8 actions=conjunction(5,2/2),conjunction(6,1/2)\n"
      " priority=9,conj_id=5,in_port=1 actions=output:5\n"
      " priority=8,conj_id=7 actions=output:7\n"
      " priority=1 actions=drop\n");
  ASSERT_TRUE(has_conjunctions(set));
  const auto resolved = resolve_conjunctions(set);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_FALSE(has_conjunctions(*resolved));
  for (unsigned proto = 0; proto < 4; ++proto) {
    for (unsigned port = 5; port < 10; ++port) {
      for (unsigned in = 0; in < 3; ++in) {
        Packet packet;
        packet.set(F::kIpProtocol, proto);
        packet.set(F::kL4DstPort, port);
        packet.set(F::kInPort, in);
        const bool met = (proto == 1 || proto == 2) && (port == 7 || port == 8) && in == 1;
        EXPECT_EQ(look_up(*resolved, 0, packet)->actions.front(),
                  met ? Action::forward("5") : Action::drop());
      }
    }
  }
  const auto most = resolve_conjunctions(set, 3);
  ASSERT_FALSE(most);
  EXPECT_EQ(most.error().code, ErrorCode::kTooBig);
}

TEST(Fields, ReadsBareLists) {
  const RuleSet set = read(
      "nw_src=1.2.3.4/32, nw_dst=10.0.0.0/8, tp_src=2888, dl_dst=fa:16:3e:44:48:72\n"
      "eth_type=0x800, nw_proto=6\n");
  ASSERT_EQ(set.rules.size(), 2U);
  EXPECT_EQ(set.rules[0].match,
            match({{F::kEthernetDst, 0xfa163e444872ULL, full_mask(F::kEthernetDst)},
                   {F::kIpv4Src, 0x01020304, 0xffffffff},
                   {F::kIpv4Dst, 0x0a000000, 0xff000000},
                   {F::kL4SrcPort, 2888, 0xffff}}));
}

TEST(Megaflow, ReadsDatapathFlows) {
  const RuleSet set = read(
      "flow-dump from the main thread:\n"
      "ufid:7f4a34bb-4776-4d3e-86fa-633d383f4d8a, skb_priority(0/0),ct_state(0x21/0x3f),"
      "ct_tuple4(src=1.2.3.4/0.0.0.0,proto=6/0),recirc_id(0x58),dp_hash(0x3f/0xf),in_port(p7),"
      "packet_type(ns=0,id=0),eth(src=0a:58:0a:80:01:09,dst=0a:58:0a:80:01:01/00:00:00:00:00:00),"
      "eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.0/255.0.0.0,proto=6,tos=0x2/0x3,ttl=64/0,"
      "frag=no),tcp(src=1/0,dst=443),tcp_flags(0/0), packets:3, bytes:0, used:never, dp:ovs, "
      "actions:ct(commit,nat(dst=1.2.3.4:80)),p9, dp-extra-info:miniflow_bits(6,3)\n"
      "recirc_id(0),in_port(2),eth_type(0x86dd),ipv6(frag=later), packets:1, actions:drop\n");
  ASSERT_EQ(set.rules.size(), 2U);
  EXPECT_EQ(set.rules[0].match,
            match({{F::kInPort, 1, 0xffffffff},
                   {F::kEthernetSrc, 0x0a580a800109ULL, full_mask(F::kEthernetSrc)},
                   {F::kEtherType, 0x0800, 0xffff},
                   {F::kIpv4Src, 0x0a000001, 0xffffffff},
                   {F::kIpv4Dst, 0x0a000000, 0xff000000},
                   {F::kIpProtocol, 6, 0xff},
                   {F::kIpEcn, 2, 3},
                   {F::kIpFragment, 0, 3},
                   {F::kL4DstPort, 443, 0xffff},
                   {F::kCtState, 0x21, 0x3f},
                   {F::kRecirculationId, 0x58, 0xffffffff},
                   {F::kDatapathHash, 0xf, 0xf}}));
  EXPECT_EQ(set.rules[0].actions,
            (std::vector{Action::other("ct(commit,nat(dst=1.2.3.4:80))"), Action::forward("p9")}));
  EXPECT_DOUBLE_EQ(set.rules[0].weight, 0.75);
  EXPECT_EQ(set.rules[1].actions, std::vector{Action::drop()});
}

TEST(TcFilter, ReadsFlowerFilters) {
  const RuleSet set = read(R"([
    {"protocol":"ip","pref":10,"kind":"flower","chain":0},
    {"protocol":"ip","pref":10,"kind":"flower","chain":0,"options":{"handle":1,
      "keys":{"eth_type":"ipv4","ip_proto":"tcp","dst_ip":"10.0.0.0/8","src_port":{"start":2,"end":5},
              "ct_state":"+trk+est"},
      "actions":[{"order":1,"kind":"mirred","mirred_action":"redirect","direction":"egress",
                  "to_dev":"eth1","index":1}]}},
    {"protocol":"all","pref":20,"kind":"flower","chain":3,"options":{"keys":{},
      "actions":[{"order":1,"kind":"gact","control_action":{"type":"goto","chain":5}}]}}])");
  ASSERT_EQ(set.rules.size(), 3U);  // 2..5 is two prefixes
  EXPECT_EQ(set.rules[0].match, match({{F::kEtherType, 0x0800, 0xffff},
                                       {F::kIpv4Dst, 0x0a000000, 0xff000000},
                                       {F::kIpProtocol, 6, 0xff},
                                       {F::kL4SrcPort, 2, 0xfffe},
                                       {F::kCtState, 0x22, 0x22}}));
  EXPECT_EQ(set.rules[0].actions, std::vector{Action::forward("eth1")});
  EXPECT_EQ(set.rules[2].table, 3U);
  EXPECT_EQ(set.rules[2].actions, std::vector{Action::jump(5)});
  EXPECT_TRUE(set.rules[2].match.fields().empty());
}

TEST(LayoutRules, TurnsPositionsIntoPriorities) {
  const RuleSet set = read(R"({"version":1,"tables":[{"id":2,"matchers":[
    {"mask":{"ip_protocol":"0xff"},"rules":[{"match":{"ip_protocol":"6"},"actions":[]}]},
    {"mask":{},"rules":[{"match":{},"actions":[{"drop":true}],"from":[4]}]}]}]})");
  ASSERT_EQ(set.rules.size(), 2U);
  EXPECT_EQ(set.rules[0].table, 2U);
  EXPECT_LT(set.rules[0].priority, set.rules[1].priority);
  EXPECT_EQ(set.rules[1].from, std::vector<std::uint32_t>{4});
}

/// A text that a reader must refuse, and what the message must say beside the file.
struct Malformed {
  Format format;
  std::string text;
  std::string says;
};

const std::string kGoodFilter = "@1.2.3.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF 0x0000/0x0000\n";
const std::string kLayoutHead = R"({"version":1,"tables":[{"id":0,"matchers":[)";

const std::vector<Malformed> kMalformed = {
    {Format::kClassbench, "", "is empty"},
    {Format::kClassbench, "@1.2.3/24 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF\n", "line 1"},
    {Format::kClassbench, kGoodFilter + "@1.2.3.4/33 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF\n", "line 2"},
    {Format::kClassbench, "@1.2.3.4 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF\n", "source prefix"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 9 : 1 0 : 1 0x06/0xFF\n", "source ports"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 0 : 65536 0 : 1 0x06/0xFF\n", "source ports"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 0 : 1 0 - 1 0x06/0xFF\n", "destination ports"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x106/0xFF\n", "protocol"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF 0x1/0xgg\n", "TCP flags"},
    {Format::kClassbench, "@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1\n", "protocol"},
    {Format::kClassbench, kGoodFilter.substr(0, kGoodFilter.size() - 1) + " 0x0\n", "last field"},
    {Format::kOpenflow, "OFPST_FLOW reply (OF1.3) (xid=0x2):\n", "no OpenFlow rule"},
    {Format::kOpenflow, " priority=1,tcp\n", "no actions="},
    {Format::kOpenflow, " priority=65536 actions=drop\n", "priority"},
    {Format::kOpenflow, " table=255 actions=drop\n", "table"},
    {Format::kOpenflow, " bogus=1 actions=drop\n", "bogus"},
    {Format::kOpenflow, " nw_src=1.2.3.4/40 actions=drop\n", "nw_src"},
    {Format::kOpenflow, " tcp,udp actions=drop\n", "contradicts"},
    {Format::kOpenflow, " ct_state=+new+new actions=drop\n", "ct_state"},
    {Format::kOpenflow, " in_port=1 actions=resubmit(,8\n", "brackets"},
    {Format::kOpenflow, " in_port=1 actions=\n", "empty"},
    {Format::kOpenflow, " xxreg4=1 actions=drop\n", "xxreg4"},
    {Format::kFields, "# nothing\n", "no rule"},
    {Format::kFields, "nw_src=1.2.3.4/32,, tp_dst=1\n", "line 1"},
    {Format::kFields, "nw_src=1.2.3.400/32\n", "nw_src"},
    {Format::kFields, "tp_src=65536\n", "tp_src"},
    {Format::kFields, "dl_dst=fa:16:3e:44:48\n", "dl_dst"},
    {Format::kFields, "eth_type\n", "eth_type"},
    {Format::kFields, "nw_proto=6\nnw_proto=six\n", "line 2"},
    {Format::kFields, "=6\n", "line 1"},
    {Format::kFields, "dl_vlan=5000\n", "dl_vlan"},
    {Format::kFields, "nw_frag=maybe\n", "nw_frag"},
    {Format::kMegaflow, "flow-dump from the main thread:\n", "no datapath flow"},
    {Format::kMegaflow, "recirc_id(0), packets:0\n", "no actions:"},
    {Format::kMegaflow, "recirc_id(0 actions:drop\n", "brackets"},
    {Format::kMegaflow, "recirc_id(x), actions:drop\n", "recirc_id"},
    {Format::kMegaflow, "eth(src=0a:58),eth_type(0x0800), actions:drop\n", "eth"},
    {Format::kMegaflow, "ipv4(src=10.0.0.1,colour=3), actions:drop\n", "colour"},
    {Format::kMegaflow, "mystery(1), actions:drop\n", "mystery"},
    {Format::kMegaflow, "in_port(), actions:drop\n", "in_port"},
    {Format::kMegaflow, "recirc_id(0), actions:\n", "empty"},
    {Format::kMegaflow, "ipv4(frag=some), actions:drop\n", "frag"},
    {Format::kTcFilter, "[", "line"},
    {Format::kTcFilter, "{}", "array"},
    {Format::kTcFilter, "[]", "no flower filter"},
    {Format::kTcFilter, "[1]", "/0"},
    {Format::kTcFilter, R"([{"kind":"u32","options":{}}])", "u32"},
    {Format::kTcFilter, R"([{"kind":"flower","options":{"keys":{"dst_ip":"x"}}}])", "dst_ip"},
    {Format::kTcFilter, R"([{"kind":"flower","options":{"keys":{"new_key":"1"}}}])", "new_key"},
    {Format::kTcFilter, R"([{"kind":"flower","pref":-1,"options":{}}])", "pref"},
    {Format::kTcFilter,
     R"([{"kind":"flower","options":{"keys":{"src_port":{"start":5,"end":2}}}}])", "port range"},
    {Format::kTcFilter, R"([{"kind":"flower","options":{"actions":[3]}}])", "actions/0"},
    {Format::kTcFilter, R"([{"kind":"flower","protocol":"ipx","options":{}}])", "ipx"},
    {Format::kLayout, "{", "line"},
    {Format::kLayout, "[]", "input"},
    {Format::kLayout, R"({"version":2,"tables":[]})", "version"},
    {Format::kLayout, R"({"version":1})", "tables"},
    {Format::kLayout, R"({"version":1,"tables":[]})", "no rule"},
    {Format::kLayout, R"({"version":1,"tables":[{"id":-1,"matchers":[]}]})", "id"},
    {Format::kLayout, kLayoutHead + R"({"rules":[]}]}]})", "mask"},
    {Format::kLayout, kLayoutHead + R"({"mask":{"colour":"0x1"},"rules":[]}]}]})", "colour"},
    {Format::kLayout,
     kLayoutHead + R"({"mask":{},"rules":[{"match":{},"actions":[{"fly":1}]}]}]}]})", "actions"},
    {Format::kLayout,
     kLayoutHead + R"({"mask":{},"rules":[{"match":{"l4_dst_port":"70000"},"actions":[]}]}]}]})",
     "l4_dst_port"},
    {Format::kLayout,
     kLayoutHead + R"({"mask":{},"rules":[{"match":{},"actions":[],"weight":2}]}]}]})", "weight"},
};

// Claim:  ten and more malformed inputs for each format are refused, and the message helps.
TEST(ReadRules, RefusesMalformedInputNamingFileAndReason) {
  for (const Malformed& bad : kMalformed) {
    const auto set = parse_rules(bad.text, "input", bad.format);
    ASSERT_FALSE(set) << to_string(bad.format) << ": " << bad.text;
    EXPECT_EQ(exit_code(set.error().code), 2) << bad.text;
    EXPECT_NE(set.error().message.find("input"), std::string::npos) << set.error().message;
    EXPECT_NE(set.error().message.find(bad.says), std::string::npos)
        << bad.text << "\n  says: " << set.error().message;
  }
}

// Claim:  no change to a valid input makes a reader crash, hang or give rules it should not.
// Oracle: the types: values lie within masks, masks within fields, or there is an error.
// Method: 3,000 seeded mutations (bytes changed, cut out, doubled) of an input of each format.
TEST(ReadRules, SurvivesMutatedInput) {
  const std::vector<std::pair<Format, std::string>> good = {
      {Format::kClassbench, kGoodFilter + kGoodFilter},
      {Format::kOpenflow,
       " cookie=0x1, table=8, priority=100,tcp,reg15=0x1/0xff,nw_dst=10.0.0.0/8,ct_state=+new-est "
       "actions=set_field:0x3->reg13,conjunction(5,1/2),resubmit(,9)\n"},
      {Format::kFields, "nw_src=1.2.3.4/32, tp_src=2888, dl_dst=fa:16:3e:44:48:72, ipv6_src=::1\n"},
      {Format::kMegaflow,
       "recirc_id(0x58),in_port(p7),eth(src=0a:58:0a:80:01:09),eth_type(0x0800),ipv4(src=10.0.0.1,"
       "dst=10.0.0.0/255.0.0.0,tos=0x2/0x3,frag=no),tcp(dst=443), packets:3, actions:ct(nat),p9\n"},
      {Format::kTcFilter,
       R"([{"protocol":"ip","pref":10,"kind":"flower","chain":0,"options":{"keys":{"dst_ip":"10.0.0.0/8","src_port":{"start":2,"end":5},"ip_tos":"4/12"},"actions":[{"kind":"gact","control_action":{"type":"drop"}}]}}])"},
      {Format::kLayout,
       kLayoutHead +
           R"({"mask":{"ipv4_src":"0xff000000"},"priority":0,"rules":[{"match":{"ipv4_src":"10.0.0.0/8"},"actions":[{"jump":3},{"count":true}],"weight":0.5,"from":[1]}]}]}]})"},
  };
  std::uint64_t state = 20240501;  // of a small generator; the seed is fixed and named here
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  for (const auto& [format, text] : good) {
    ASSERT_TRUE(parse_rules(text, "input", format)) << to_string(format);
    EXPECT_EQ(detect_format(text), format);
    for (int i = 0; i < 3000; ++i) {
      std::string mutated = text;
      for (std::uint64_t n = 1 + next() % 4; n > 0 && !mutated.empty(); --n) {
        const std::size_t at = next() % mutated.size();
        switch (next() % 4) {
          case 0:
            mutated[at] = static_cast<char>(next());
            break;
          case 1:
            mutated.erase(at, 1 + next() % 8);
            break;
          case 2:
            mutated.insert(at, mutated.substr(at, next() % 16));
            break;
          default:
            mutated[at] = "0123456789/:=,()[]{}\"+-"[next() % 23];
        }
      }
      const auto set = parse_rules(mutated, "input", format);
      if (!set) continue;
      for (const FlowRule& rule : set->rules) {
        for (const FieldMatch& part : rule.match.fields()) {
          ASSERT_EQ(part.value & ~part.bits, U128{0}) << mutated;
          ASSERT_EQ(part.bits & ~full_mask(part.field), U128{0}) << mutated;
        }
      }
      (void)resolve_conjunctions(*set);
    }
  }
}

/// A file of the shared data with what its README says of it.
struct Known {
  const char* path;
  Format format;
  std::size_t rules;
  std::size_t tables;
};
void PrintTo(const Known& known, std::ostream* out) { *out << known.path; }
class ReadRulesData : public testing::TestWithParam<Known> {};

TEST_P(ReadRulesData, HasTheRulesThatItsReadmeStates) {
  const std::string path = shared(GetParam().path);
  if (!std::filesystem::exists(path))
    GTEST_SKIP()
        << path
        << " is not there; put the published data into ../shared/data, beside the source tree";
  const auto text = files::read_text(path);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(detect_format(*text), GetParam().format);
  const auto set = read_rules(path);
  ASSERT_TRUE(set) << set.error().message;
  std::set<std::uint32_t> lines;
  std::set<std::uint32_t> tables;
  for (const FlowRule& rule : set->rules) {
    lines.insert(rule.from.begin(), rule.from.end());
    tables.insert(rule.table);
  }
  EXPECT_EQ(lines.size(), GetParam().rules);
  EXPECT_EQ(tables.size(), GetParam().tables);
}
INSTANTIATE_TEST_SUITE_P(
    Shared, ReadRulesData,
    testing::Values(Known{"classbench/acl1_1k.rules.xz", Format::kClassbench, 950, 1},
                    Known{"classbench/fw1_10k.rules.xz", Format::kClassbench, 9380, 1},
                    Known{"classbench/fw2_100k.rules.xz", Format::kClassbench, 96025, 1},
                    Known{"classbench/tuplemerge_acl1_seed_1.rules", Format::kClassbench, 941, 1},
                    Known{"openflow/of1_1k.of.xz", Format::kFields, 611, 1},
                    Known{"openflow/of1_10k.of.xz", Format::kFields, 3068, 1},
                    Known{"ovn/ovn_s1_openflow.txt.xz", Format::kOpenflow, 13997, 51},
                    Known{"ovn/ovn_s1_megaflows.txt.xz", Format::kMegaflow, 6645, 1}));

}  // namespace
}  // namespace greynic::rules
