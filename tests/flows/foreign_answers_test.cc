/// What switches and kernels answer, with bytes changed, cut out and doubled: no reader of it may
/// crash, hang or give what cannot be. Every case has a seed, which GREYNIC_SEED replaces.

#include <gtest/gtest.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "ovs/datapath_counts.h"
#include "ovs/ovs_read.h"
#include "ovs/ovsdb.h"
#include "random_rules.h"
#include "tc/tc_flower.h"
#include "tc/tc_snapshot.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// One to four changes: a byte changed or set to a digit, a piece cut out or doubled.
template <typename Text>
Text mutated(Text text, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const auto at = static_cast<std::ptrdiff_t>(random() % text.size());
    const auto length = static_cast<std::ptrdiff_t>(
        std::min<std::uint64_t>(random() % 20, text.size() - static_cast<std::size_t>(at)));
    const auto place = text.begin() + at;
    switch (random() % 4) {
      case 0:
        *place = static_cast<typename Text::value_type>(random());
        break;
      case 1:
        *place = static_cast<typename Text::value_type>('0' + random() % 10);
        break;
      case 2:
        text.erase(place, place + length);
        break;
      default: {
        const Text piece(place, place + length);
        text.insert(place, piece.begin(), piece.end());
      }
    }
  }
  return text;
}

void expect_sound(const Match& match) {
  for (const FieldMatch& part : match.fields()) {
    EXPECT_EQ(part.bits & ~full_mask(part.field), U128{0}) << info(part.field).name;
    EXPECT_EQ(part.value & ~part.bits, U128{0}) << info(part.field).name;
  }
}

constexpr const char* kStats =
    "pmd thread numa_id 0 core_id 1:\n  packets received: 150\n  packet recirculations: 0\n"
    "  emc hits: 50\n  smc hits: 0\n  megaflow hits: 100\n"
    "  avg. subtable lookups per megaflow hit: 4.00\n  processing cycles: 1000 (99.96%)\n"
    "main thread:\n  packets received: 7\n";
constexpr const char* kUpcalls =
    "netdev@ovs-netdev:\n  flows         : (current 26) (avg 33) (max 34) (limit 200000)\n"
    "  dump duration : 12ms\n";
constexpr const char* kFlows =
    "OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x1, duration=3.2s, table=8, n_packets=30, "
    "n_bytes=9, send_flow_rem priority=100,tcp,reg15=0x1/0xff,nw_dst=10.0.0.0/8,tp_dst=0x10/0xfffe "
    "actions=push_vlan:0x8100,set_field:4101->vlan_vid,set_field:0x3/0xff->reg13,meter:7,output:2,"
    "goto_table:9\n cookie=0x2, n_packets=1, ipv6,ipv6_src=fe80::/10 "
    "actions=set_field:ff::1/ff::->ipv6_dst,note:63.6f.75.6e.74.00,drop\n";

// Claim:  no change to what ovs-appctl and ovs-ofctl print makes a reader crash or give what cannot
//         be: counts that are no numbers, values beyond masks, masks beyond fields.
TEST(ForeignAnswers, OfOvsProgramsAreReadOrRefused) {
  const std::uint64_t seed = seed_or(51);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", seed " << seed);
    if (const auto stats = parse_pmd_stats(mutated(std::string(kStats), random))) {
      EXPECT_TRUE(std::isfinite(stats->lookups_per_hit) && std::isfinite(stats->packets));
    }
    if (const auto found = parse_revalidators(mutated(std::string(kUpcalls), random))) {
      EXPECT_TRUE(std::isfinite(found->flows) && std::isfinite(found->dump_ms));
    }
    const auto flows = read_flows(mutated(std::string(kFlows), random), {{"p2", 2}});
    if (!flows) continue;
    EXPECT_LE(flows->size(), 12U);
    for (const RuleCount& row : *flows) expect_sound(row.rule.match);
  }
}

/// A filter as a kernel might show it, built by the driver's own writers.
os::NetlinkAnswer filter_of(const Match& match, const std::vector<Action>& actions) {
  tcmsg header{};
  header.tcm_handle = 1;
  header.tcm_info = TC_H_MAKE(7U << 16, 8);
  os::NetlinkMessage message(RTM_NEWTFILTER, 0, header);
  message.put_text(TCA_KIND, "flower");
  message.put_value(TCA_CHAIN, std::uint32_t{3});
  const std::size_t options = message.open(TCA_OPTIONS);
  EXPECT_TRUE(put_flower_match(message, match).has_value());
  EXPECT_TRUE(put_tc_actions(message, actions, {{"p", 2}}).has_value());
  message.close(options);
  const os::ByteView bytes = message.bytes().subspan(sizeof(nlmsghdr));
  return {RTM_NEWTFILTER, {bytes.begin(), bytes.end()}};
}

// Claim:  no change to a filter in netlink's form makes a reader of it crash or read beyond it, and
//         what comes out is a match.
TEST(ForeignAnswers, OfTheKernelsFiltersAreReadOrRefused) {
  const std::uint64_t seed = seed_or(52);
  std::mt19937_64 random(seed);
  Match match;
  match.set(F::kVlanPresent, 1);
  match.set(F::kVlanId, 5);
  match.set(F::kEtherType, 0x86dd);
  match.set(F::kIpv6Src, U128{0xfe80} << 112, U128{0xffff} << 112);
  match.set(F::kIpProtocol, 6);
  match.set(F::kTcpFlags, 2, 0x12);
  match.set(F::kIpFragment, 0, 3);
  match.set(F::kIpDscp, 4, 4);
  match.set(F::kCtState, 0x21, 0x21);
  const os::NetlinkAnswer filter = filter_of(
      match, {{.kind = ActionKind::kCount},
              {.kind = ActionKind::kSetField, .field = F::kPacketMark, .value = 1, .bits = 3},
              {.kind = ActionKind::kPushVlan, .number = 9},
              {.kind = ActionKind::kVxlanEncap, .number = 7, .text = "src=1.2.3.4,dst=5.6.7.8"},
              Action::forward("p"),
              Action::jump(4)});
  for (int round = 0; round < 20'000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << ", seed " << seed);
    os::NetlinkAnswer changed{filter.type, mutated(filter.payload, random)};
    if (!is_filter(changed)) continue;
    os::each_attribute(attributes_of(changed), [&](std::uint16_t type, os::ByteView value) {
      if (type != TCA_OPTIONS) return;
      if (const auto read = read_flower_match(value, 0x8100)) expect_sound(*read);
      os::each_attribute(value, [](std::uint16_t option, os::ByteView content) {
        if (option == TCA_FLOWER_ACT) (void)read_tc_actions(content, {{"p", 2}});
      });
    });
    const auto text = snapshot_text(true, {changed});
    if (!text) continue;
    const auto back = read_snapshot(*text, 5);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->filters.size(), 1U);
    (void)read_snapshot(mutated(*text, random), 5);
  }
}

/// Answers every message on a unix socket with one text, until the other side goes.
class Answering {
 public:
  explicit Answering(std::string path) : path_(std::move(path)) {
    unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  ~Answering() {
    close(listener_);
    unlink(path_.c_str());
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  /// Serves one connection: one answer, then the end of it.
  void serve(const std::string& answer) const {
    const int connection = accept(listener_, nullptr, nullptr);
    char request[4096];
    if (recv(connection, request, sizeof request, 0) > 0) {
      (void)!::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    close(connection);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int listener_ = -1;
};

constexpr const char* kPortsAnswer =
    R"({"id":1,"error":null,"result":[{"rows":[{"ports":["set",[["uuid","a"],["uuid","b"]]]}]},)"
    R"({"rows":[{"_uuid":["uuid","a"],"interfaces":["uuid","c"]},)"
    R"({"_uuid":["uuid","b"],"interfaces":["uuid","d"]}]},)"
    R"({"rows":[{"_uuid":["uuid","c"],"name":"p1","ofport":1},)"
    R"({"_uuid":["uuid","d"],"name":"p2","ofport":["set",[]]}]}]})";

// Claim:  a database that answers otherwise than RFC 7047 says, or goes in the middle of a word,
//         ends in ports or in a message.
TEST(ForeignAnswers, OfADatabaseAreReadOrRefused) {
  const std::uint64_t seed = seed_or(53);
  std::mt19937_64 random(seed);
  const Answering database("/tmp/greynic-answers-" + std::to_string(getpid()));
  for (int round = 0; round < 1500; ++round) {
    const std::string answer =
        round == 0 ? kPortsAnswer : mutated(std::string(kPortsAnswer), random);
    std::thread server([&] { database.serve(answer); });
    auto connected = Ovsdb::connect(database.path());
    ASSERT_TRUE(connected.has_value()) << connected.error().message;
    const auto ports = connected->ports("br0");
    if (round == 0) {
      ASSERT_TRUE(ports.has_value()) << ports.error().message;
      EXPECT_EQ(*ports, (std::map<std::string, std::uint32_t>{{"p1", 1}}));
    }
    if (!ports) EXPECT_FALSE(ports.error().message.empty()) << answer << " seed " << seed;
    server.join();
  }
}

}  // namespace
}  // namespace greynic::flows
