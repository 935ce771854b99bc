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

struct Root {
  std::string kind;
  std::uint64_t bits_per_second = 0;
};

/// Of the options of tbf.
std::uint64_t tbf_rate(os::ByteView options) {
  std::uint64_t bytes_per_second = 0;
  os::each_attribute(options, [&](std::uint16_t type, os::ByteView value) {
    tc_tbf_qopt parameters{};
    if (type == TCA_TBF_PARMS && value.size() >= sizeof parameters && bytes_per_second == 0) {
      std::memcpy(&parameters, value.data(), sizeof parameters);
      bytes_per_second = parameters.rate.rate;
    }
    if (type == TCA_TBF_RATE64 && value.size() >= sizeof bytes_per_second) {
      std::memcpy(&bytes_per_second, value.data(), sizeof bytes_per_second);
    }
  });
  return bytes_per_second * 8;
}

/// The roots of a device: one, or those below mq.
Result<std::vector<Root>> roots_of(os::NetlinkSocket& socket, int number) {
  tcmsg about{};
  about.tcm_family = AF_UNSPEC;
  about.tcm_ifindex = number;
  const auto answers = socket.dump(os::NetlinkMessage(RTM_GETQDISC, 0, about));
  if (!answers) return pass_on(answers);
  std::vector<Root> roots, below_mq;
  for (const os::NetlinkAnswer& answer : *answers) {
    tcmsg header{};
    if (answer.type != RTM_NEWQDISC || answer.payload.size() < sizeof header) continue;
    std::memcpy(&header, answer.payload.data(), sizeof header);
    if (header.tcm_ifindex != number || header.tcm_parent == TC_H_INGRESS) continue;
    Root root;
    os::each_attribute(os::ByteView(answer.payload).subspan(sizeof header),
                       [&](std::uint16_t type, os::ByteView value) {
                         if (type == TCA_KIND) root.kind = os::text_of(value);
                         if (type == TCA_OPTIONS && root.kind == "tbf") {
                           root.bits_per_second = tbf_rate(value);
                         }
                       });
    (header.tcm_parent == TC_H_ROOT ? roots : below_mq).push_back(root);
  }
  if (roots.size() == 1 && roots[0].kind == "mq") return below_mq;
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
  const auto roots = roots_of(*socket, number);
  if (!roots) return pass_on(roots);
  const auto device = kind_of_device(*socket, number);
  if (!device) return pass_on(device);
  const auto missing = [&](const std::string& why) {
    return fail(ErrorCode::kMissing, fmt::format("{}: {}; {}", interface, why, remedy(interface)));
  };
  if (roots->empty()) return missing("the device has no queue");
  for (const auto& [kind, rate] : *roots) {
    if (kind == "tbf" || (kind == "htb" && roots->size() == 1)) continue;
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
  const bool has_classes = roots->front().kind == "htb";
  return Discipline{number, has_classes, !has_classes && roots->size() == 1,
                    roots->front().bits_per_second};
}

}  // namespace greynic::live
