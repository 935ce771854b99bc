#include <gtest/gtest.h>

#include "in_band/path.h"

namespace greynic::trace {
namespace {

/// c1/veth0 - h1/port, bridge, h1/vx over h1/under - h2/under, h2/vx, h2/port - c2/veth0.
Topology overlay(int inner_mtu, int outer_mtu, bool over_ipv6 = false) {
  Topology made;
  made.places = {{.inode = 1, .name = "c1"},
                 {.inode = 2, .name = "h1"},
                 {.inode = 3, .name = "h2"},
                 {.inode = 4, .name = "c2"}};
  const auto add = [&](std::size_t place, const char* name, const char* kind, int mtu) {
    Device device;
    device.place = place;
    device.index = static_cast<int>(made.devices.size()) + 2;
    device.name = name;
    device.kind = kind;
    device.mtu = mtu;
    device.ethernet = true;
    device.over_ipv6 = over_ipv6;
    made.devices.push_back(device);
  };
  add(0, "veth0", "veth", inner_mtu);
  add(1, "port", "veth", inner_mtu);
  add(1, "vx", "vxlan", inner_mtu);
  add(1, "under", "veth", outer_mtu);
  add(2, "under", "veth", outer_mtu);
  add(2, "vx", "vxlan", inner_mtu);
  add(2, "port", "veth", inner_mtu);
  add(3, "veth0", "veth", inner_mtu);
  return made;
}

InBandPath whole_way() {
  return {.rule = 0,
          .points = {{0, true},
                     {1, false},
                     {2, true},
                     {3, true},
                     {4, false},
                     {5, false},
                     {6, true},
                     {7, false}},
          .most_bytes = 0,
          .guards = {}};
}

// Claim:  a path carries what its smallest device does, less what tunnels put in front there.
// Oracle: 14 + 20 + 8 + 8 bytes of VXLAN over IPv4, 20 more over IPv6.
TEST(InBandPath, CarriesWhatItsSmallestDeviceDoes) {
  EXPECT_EQ(smallest_mtu(whole_way(), overlay(1450, 1500)), 1450U);
  EXPECT_EQ(smallest_mtu(whole_way(), overlay(1450, 1490)), 1440U);
  EXPECT_EQ(smallest_mtu(whole_way(), overlay(9000, 1500)), 1450U);
  EXPECT_EQ(smallest_mtu(whole_way(), overlay(9000, 1500, true)), 1430U);
  EXPECT_EQ(smallest_mtu(whole_way(), overlay(1400, 9000)), 1400U);
}

// Claim:  the other end of a veth counts too, though it is no point.
TEST(InBandPath, SeesTheOtherEndOfAVeth) {
  Topology topology = overlay(1450, 1500);
  topology.devices[1].mtu = 1300;
  topology.devices[0].peer = 1;
  InBandPath path{.rule = 0, .points = {{0, true}, {7, false}}, .most_bytes = 0, .guards = {}};
  EXPECT_EQ(smallest_mtu(path, topology), 1300U);
}

/// What is said of a rule over these points of the overlay, where some devices are real NICs.
std::string refusal(const std::string& points, const std::vector<std::size_t>& nics) {
  Topology topology = overlay(1450, 1500);
  topology.devices[2].lower = 3;
  topology.devices[5].lower = 4;
  for (const std::size_t device : nics) topology.devices[device].kind.clear();
  const auto rules = parse_rules(
      R"({"version": 1, "engine": "in_band", "rules": [{"most_bytes": 1000, "points": [)" + points +
          R"(], "match": {"protocol": "udp"}}]})",
      "rules");
  if (!rules) return rules.error().message;
  const auto paths = make_in_band_paths(*rules, topology);
  if (paths) return "";
  EXPECT_EQ(paths.error().code, ErrorCode::kRefused);
  return paths.error().message;
}

// Claim:  stamps never reach a real NIC: one in the middle of a path, behind a tunnel that is a point, or below one, is
//         refused by its name; one where packets enter or leave without stamps is not.
// Oracle: a recorded topology, in which devices without a kind are hardware.
TEST(InBandPath, RefusesARealNicThatWouldSeeStamps) {
  const std::string from = R"({"device": "c1/veth0", "direction": "queue"},)";
  const std::string tunnel = R"({"device": "h1/vx", "direction": "queue"},)";
  const std::string wire = R"({"device": "h1/under", "direction": "queue"})";
  const std::string end = R"({"device": "c2/veth0", "direction": "receive"})";
  EXPECT_EQ(refusal(from + tunnel + end, {}), "");
  EXPECT_NE(refusal(from + wire + "," + end, {3}).find("h1/under is a real NIC"),
            std::string::npos);
  EXPECT_NE(refusal(from + tunnel + wire, {3}).find("h1/vx sends through h1/under, a real NIC"),
            std::string::npos);
  EXPECT_NE(refusal(from + tunnel + end, {3}).find("h1/vx sends through h1/under, a real NIC"),
            std::string::npos);
  EXPECT_EQ(refusal(from + R"({"device": "h1/vx", "direction": "queue"})", {3}), "");
  EXPECT_EQ(refusal(R"({"device": "h2/under", "direction": "receive"},)" + end, {4}), "");
}

}  // namespace
}  // namespace greynic::trace
