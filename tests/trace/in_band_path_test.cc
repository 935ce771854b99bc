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

}  // namespace
}  // namespace greynic::trace
