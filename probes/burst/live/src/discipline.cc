#include "discipline.h"

#include <fmt/core.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cstring>
#include <vector>

#include "greynic/os/netlink.h"

namespace greynic::live {
namespace {

/// Kinds of the roots of a device: one, or those below mq.
Result<std::vector<std::string>> kinds_of(os::NetlinkSocket& socket, int number) {
  tcmsg about{};
  about.tcm_family = AF_UNSPEC;
  about.tcm_ifindex = number;
  const auto answers = socket.dump(os::NetlinkMessage(RTM_GETQDISC, 0, about));
  if (!answers) return pass_on(answers);
  std::vector<std::string> roots, below_mq;
  for (const os::NetlinkAnswer& answer : *answers) {
    tcmsg header{};
    if (answer.type != RTM_NEWQDISC || answer.payload.size() < sizeof header) continue;
    std::memcpy(&header, answer.payload.data(), sizeof header);
    if (header.tcm_ifindex != number || header.tcm_parent == TC_H_INGRESS) continue;
    std::string kind;
    os::each_attribute(os::ByteView(answer.payload).subspan(sizeof header),
                       [&](std::uint16_t type, os::ByteView value) {
                         if (type == TCA_KIND) kind = os::text_of(value);
                       });
    (header.tcm_parent == TC_H_ROOT ? roots : below_mq).push_back(kind);
  }
  if (roots.size() == 1 && roots[0] == "mq") return below_mq;
  return roots;
}

/// "veth", "vxlan"; empty for hardware.
Result<std::string> kind_of_device(os::NetlinkSocket& socket, int number) {
  ifinfomsg about{};
  about.ifi_index = number;
  const auto answers = socket.ask(os::NetlinkMessage(RTM_GETLINK, 0, about));
  if (!answers) return pass_on(answers);
  std::string kind;
  for (const os::NetlinkAnswer& answer : *answers) {
    if (answer.type != RTM_NEWLINK || answer.payload.size() < sizeof about) continue;
    os::each_attribute(os::ByteView(answer.payload).subspan(sizeof about),
                       [&](std::uint16_t type, os::ByteView value) {
                         if (type != IFLA_LINKINFO) return;
                         os::each_attribute(value, [&](std::uint16_t inner, os::ByteView text) {
                           if (inner == IFLA_INFO_KIND) kind = os::text_of(text);
                         });
                       });
  }
  return kind;
}

std::string remedy(const std::string& interface) {
  return fmt::format(
      "put a queue there that can be watched: tc qdisc replace dev {} root tbf rate 10gbit burst "
      "64kb limit 1mb, with the rate of the link",
      interface);
}

}  // namespace

Result<Discipline> discipline_of(const std::string& interface) {
  const auto number = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (number == 0) {
    return fail(ErrorCode::kBadInput,
                fmt::format("there is no network device '{}'; `ip link` lists them", interface));
  }
  auto socket = os::NetlinkSocket::create();
  if (!socket) return pass_on(socket);
  const auto kinds = kinds_of(*socket, number);
  if (!kinds) return pass_on(kinds);
  const auto device = kind_of_device(*socket, number);
  if (!device) return pass_on(device);
  const auto missing = [&](const std::string& why) {
    return fail(ErrorCode::kMissing, fmt::format("{}: {}; {}", interface, why, remedy(interface)));
  };
  if (kinds->empty()) return missing("the device has no queue");
  for (const std::string& kind : *kinds) {
    if (kind == "tbf" || (kind == "htb" && kinds->size() == 1)) continue;
    if (kind == "noqueue") return missing("the device has no queue (noqueue)");
    if (kind == "pfifo_fast") {
      return missing(
          "pfifo_fast works without a lock, and on a device that takes packets at once "
          "they never come to it");
    }
    if (kind == "pfifo" || kind == "bfifo") {
      if (*device != "veth") continue;
      return missing(kind +
                     " on a veth lets packets by without queueing them, so there is "
                     "nothing to see");
    }
    return missing(kind + " is no first-in first-out queue");
  }
  return Discipline{number, kinds->front() == "htb"};
}

}  // namespace greynic::live
