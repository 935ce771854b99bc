/// How tunnels end in the private switch. Open vSwitch unwraps what it would hand to a bridge's own
/// port when address and UDP port are those of a tunnel (ovs-vswitchd.conf.db(5), userspace
/// tunneling), so wrapped packets arrive at a bridge of their own, the underlay, which has the
/// addresses; from there they come to the bridge under test as out of a tunnel port.

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "greynic/os/netlink.h"
#include "ovs/private_switch.h"

namespace greynic::flows {
namespace {

constexpr const char* kTunnelPort = "greynic-vxlan";
constexpr int kTunnelPortNumber = 65000;  // far from those of sinks
constexpr const char* kPlainBelow = "greynic-below";
constexpr const char* kPlainAbove = "greynic-above";
constexpr int kPlainBelowNumber = 2;

std::string colons(std::uint64_t ethernet) {
  std::string text;
  for (int shift = 40; shift >= 0; shift -= 8) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", ethernet >> shift & 0xff);
  }
  return text;
}

std::string dotted(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
                     address & 0xff);
}

/// From inside the switch's network namespace.
Result<void> give_addresses(const std::string& interface,
                            const std::set<std::uint32_t>& addresses) {
  auto socket = os::NetlinkSocket::create();
  if (!socket) return pass_on(socket);
  const auto there = os::links(*socket);
  if (!there) return pass_on(there);
  const auto found = there->find(interface);
  if (found == there->end()) {
    return fail(ErrorCode::kMissing, "the switch made no interface " + interface);
  }
  ifinfomsg link{};
  link.ifi_index = found->second;
  link.ifi_flags = link.ifi_change = IFF_UP;
  std::vector<os::NetlinkMessage> messages = {{RTM_NEWLINK, 0, link}};
  for (const std::uint32_t address : addresses) {
    ifaddrmsg header{};
    header.ifa_family = AF_INET;
    header.ifa_prefixlen = 32;
    header.ifa_index = static_cast<unsigned>(found->second);
    os::NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, header);
    message.put_value(IFA_LOCAL, htonl(address));
    message.put_value(IFA_ADDRESS, htonl(address));
    messages.push_back(std::move(message));
  }
  return socket->send(messages);
}

}  // namespace

std::string PrivateSwitch::underlay() const {
  return options_.bridge == "underlay" ? "underlay2" : "underlay";
}

Result<void> PrivateSwitch::make_underlay() {
  const std::string ethernet = colons(kTunnelEnd.ethernet);
  if (auto made = database_->add_bridge(underlay(), {{"hwaddr", ethernet}}); !made) return made;
  auto made =
      database_->add_port(options_.bridge, {.name = kTunnelPort,
                                            .type = "vxlan",
                                            .options = {{"remote_ip", "flow"}, {"key", "flow"}},
                                            .openflow_number = kTunnelPortNumber});
  if (!made) return made;
  auto ruled = os::run({.words = {"ovs-ofctl", "-O", "OpenFlow15", "replace-flows",
                                  fmt::format("unix:{}/{}.mgmt", folder(), underlay()), "-"},
                        .input = fmt::format("priority=2,in_port={0},dl_dst={1},actions=LOCAL\n"
                                             "priority=1,in_port={0},actions=output:{2}\n",
                                             kSourceNumber, ethernet, kPlainBelowNumber)});
  return ruled ? Result<void>() : Result<void>(pass_on(ruled));
}

Result<void> PrivateSwitch::add_addresses(const std::set<std::uint32_t>& addresses) {
  Result<void> given;
  auto entered = place_.inside([&] { given = give_addresses(underlay(), addresses); });
  if (!entered) return entered;
  if (!given) return given.error().while_doing("giving tunnels their addresses");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    auto ends = ask("tnl/ports/show", {"-v"});
    if (!ends) return pass_on(ends);
    const bool all = std::all_of(addresses.begin(), addresses.end(), [&](std::uint32_t address) {
      return ends->find(fmt::format("ipv4(dst={},", dotted(address))) != std::string::npos;
    });
    if (all) return {};
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(ErrorCode::kIo, "the switch did not take the tunnels' addresses within 10 s");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<void> PrivateSwitch::end_tunnels(const std::set<std::uint32_t>& addresses) {
  std::set<std::uint32_t> added;
  std::set_difference(addresses.begin(), addresses.end(), tunnel_ends_.begin(), tunnel_ends_.end(),
                      std::inserter(added, added.end()));
  if (added.empty()) return {};
  if (tunnel_ends_.empty()) {
    if (auto made = make_underlay(); !made) return made.error().while_doing("ending tunnels");
  }
  if (auto done = add_addresses(added); !done) return done;
  tunnel_ends_.merge(added);
  return {};
}

Result<void> PrivateSwitch::connect_underlay() {
  // On the bridge the end of the patch stands where the source would.
  return database_->add_ports({{underlay(),
                                {.name = kPlainBelow,
                                 .type = "patch",
                                 .options = {{"peer", kPlainAbove}},
                                 .openflow_number = kPlainBelowNumber}},
                               {options_.bridge,
                                {.name = kPlainAbove,
                                 .type = "patch",
                                 .options = {{"peer", kPlainBelow}},
                                 .openflow_number = static_cast<int>(kSourceNumber)}}});
}

Result<void> PrivateSwitch::disconnect_underlay() {
  if (auto gone = database_->remove_port(options_.bridge, kPlainAbove); !gone) return gone;
  return database_->remove_port(underlay(), kPlainBelow);
}

}  // namespace greynic::flows
