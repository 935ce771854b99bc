/// Readers of what devices, switches, kernels and commands under test answer.

#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "fuzz.h"
#include "ovs/datapath_counts.h"
#include "ovs/ovs_read.h"
#include "ovs/ovsdb.h"
#include "tc/tc_flower.h"
#include "tc/tc_snapshot.h"

namespace greynic::fuzz {
namespace {

using F = MatchField;

Target ovs_pmd_stats() {
  return {"ovs_pmd_stats",
          {"pmd thread numa_id 0 core_id 1:\n  packets received: 150\n  packet recirculations: 0\n"
           "  emc hits: 50\n  smc hits: 0\n  megaflow hits: 100\n"
           "  avg. subtable lookups per megaflow hit: 4.00\n  processing cycles: 1000 (99.96%)\n"
           "main thread:\n  packets received: 7\n"},
          [](std::string_view text) {
            const auto stats = flows::parse_pmd_stats(text);
            claim_sound(stats);
            if (stats) {
              claim(std::isfinite(stats->lookups_per_hit) && std::isfinite(stats->packets),
                    "counts are numbers");
            }
          }};
}

Target ovs_upcalls() {
  return {"ovs_upcalls",
          {"netdev@ovs-netdev:\n  flows         : (current 26) (avg 33) (max 34) (limit 200000)\n"
           "  dump duration : 12ms\n"},
          [](std::string_view text) {
            const auto found = flows::parse_revalidators(text);
            claim_sound(found);
            if (found) {
              claim(std::isfinite(found->flows) && std::isfinite(found->dump_ms),
                    "counts are numbers");
            }
            (void)flows::count_megaflows(text);
          }};
}

Target ovs_flows() {
  return {
      "ovs_flows",
      {"OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x1, duration=3.2s, table=8, n_packets=30, "
       "n_bytes=9, send_flow_rem priority=100,tcp,reg15=0x1/0xff,nw_dst=10.0.0.0/8,"
       "tp_dst=0x10/0xfffe actions=push_vlan:0x8100,set_field:4101->vlan_vid,"
       "set_field:0x3/0xff->reg13,meter:7,output:2,goto_table:9\n cookie=0x2, n_packets=1, "
       "ipv6,ipv6_src=fe80::/10 actions=set_field:ff::1/ff::->ipv6_dst,"
       "note:63.6f.75.6e.74.00,drop\n"},
      [](std::string_view text) {
        const auto read = flows::read_flows(text, {{"p2", 2}});
        claim_sound(read);
        if (!read) return;
        for (const auto& row : *read) claim_sound(row.rule.match);
      }};
}

/// A filter as a kernel might show it, built by the driver's own writers.
std::string kernel_filter() {
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
  const std::vector<Action> actions = {
      {.kind = ActionKind::kCount},
      {.kind = ActionKind::kSetField, .field = F::kPacketMark, .value = 1, .bits = 3},
      {.kind = ActionKind::kPushVlan, .number = 9},
      {.kind = ActionKind::kVxlanEncap, .number = 7, .text = "src=1.2.3.4,dst=5.6.7.8"},
      Action::forward("p"),
      Action::jump(4)};
  tcmsg header{};
  header.tcm_handle = 1;
  header.tcm_info = TC_H_MAKE(7U << 16, 8);
  os::NetlinkMessage message(RTM_NEWTFILTER, 0, header);
  message.put_text(TCA_KIND, "flower");
  message.put_value(TCA_CHAIN, std::uint32_t{3});
  const std::size_t options = message.open(TCA_OPTIONS);
  claim(flows::put_flower_match(message, match).has_value(), "the match can be written");
  claim(flows::put_tc_actions(message, actions, {{"p", 2}}).has_value(), "the actions can be");
  message.close(options);
  const os::ByteView bytes = message.bytes().subspan(sizeof(nlmsghdr));
  return {bytes.begin(), bytes.end()};
}

Target tc_filter() {
  return {"tc_filter", {kernel_filter()}, [](std::string_view bytes) {
            const os::NetlinkAnswer filter{RTM_NEWTFILTER, {bytes.begin(), bytes.end()}};
            if (!flows::is_filter(filter)) return;
            os::each_attribute(
                flows::attributes_of(filter), [&](std::uint16_t type, os::ByteView value) {
                  if (type != TCA_OPTIONS) return;
                  if (const auto read = flows::read_flower_match(value, 0x8100)) claim_sound(*read);
                  os::each_attribute(value, [](std::uint16_t option, os::ByteView content) {
                    if (option == TCA_FLOWER_ACT)
                      claim_sound(flows::read_tc_actions(content, {{"p", 2}}));
                  });
                });
            const auto text = flows::snapshot_text(true, {filter});
            claim_sound(text);
            if (!text) return;
            const auto back = flows::read_snapshot(*text, 5);
            claim(back.has_value() && back->filters.size() == 1, "a snapshot reads back");
          }};
}

Target tc_snapshot() {
  const os::NetlinkAnswer filter{RTM_NEWTFILTER, [] {
                                   const std::string bytes = kernel_filter();
                                   return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
                                 }()};
  return {"tc_snapshot",
          {flows::snapshot_text(true, {filter}).value_or("ingress\n")},
          [](std::string_view text) { claim_sound(flows::read_snapshot(std::string(text), 5)); }};
}

/// Attributes in attributes, as every netlink family sends them.
void walk(os::ByteView payload, int depth) {
  os::each_attribute(payload, [&](std::uint16_t, os::ByteView value) {
    (void)os::native_number(value);
    (void)os::text_of(value);
    if (depth < 8) walk(value, depth + 1);
  });
}

Target netlink() {
  return {"netlink", {kernel_filter()}, [](std::string_view bytes) {
            walk({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, 0);
          }};
}

/// A unix socket whose every connection is answered with one text, then ended.
class Answering {
 public:
  Answering() : path_(folder() + "/database") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    claim(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(listener_, 1) == 0,
          "a socket can be bound");
    thread_ = std::thread([this] { serve(); });
  }
  ~Answering() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  /// Before somebody connects.
  void say(std::string_view answer) {
    const std::lock_guard lock(mutex_);
    answer_ = answer;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// The last connection may still be answered when the next answer is given.
  [[nodiscard]] std::string answer() const {
    const std::lock_guard lock(mutex_);
    return answer_;
  }
  void serve() const {
    for (int connection; (connection = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      char request[4096];
      if (::recv(connection, request, sizeof request, 0) > 0) {
        const std::string text = answer();
        (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      }
      ::close(connection);
    }
  }

  std::string path_;
  mutable std::mutex mutex_;
  std::string answer_;
  int listener_ = -1;
  std::thread thread_;
};

Target ovsdb() {
  return {
      "ovsdb",
      {R"({"id":1,"error":null,"result":[{"rows":[{"ports":["set",[["uuid","a"],["uuid","b"]]]}]},)"
       R"({"rows":[{"_uuid":["uuid","a"],"interfaces":["uuid","c"]},)"
       R"({"_uuid":["uuid","b"],"interfaces":["uuid","d"]}]},)"
       R"({"rows":[{"_uuid":["uuid","c"],"name":"p1","ofport":1},)"
       R"({"_uuid":["uuid","d"],"name":"p2","ofport":["set",[]]}]}]})",
       R"({"id":"echo","method":"echo","params":[]}{"id":1,"error":{"error":"no"},"result":null})"},
      [](std::string_view answer) {
        static Answering database;
        database.say(answer);
        auto connected = flows::Ovsdb::connect(database.path());
        claim(connected.has_value(), "the socket takes a connection");
        claim_sound(connected->ports("br0"));
      }};
}

}  // namespace

std::vector<Target> answer_targets() {
  return {ovs_pmd_stats(), ovs_upcalls(), ovs_flows(), tc_filter(),
          tc_snapshot(),   netlink(),     ovsdb()};
}

}  // namespace greynic::fuzz
