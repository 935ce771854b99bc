#include "greynic/burst/flow_key.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>

namespace greynic::burst {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint16_t kIpv4Type = 0x0800, kIpv6Type = 0x86dd;
constexpr std::uint8_t kTcp = 6, kUdp = 17, kDccp = 33, kSctp = 132, kUdpLite = 136;
constexpr std::uint16_t kRocePort = 4791;
constexpr std::size_t kUdpHeader = 8, kBthHeader = 12;

std::uint16_t two_bytes(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

bool has_ports(std::uint8_t protocol) {
  return protocol == kTcp || protocol == kUdp || protocol == kDccp || protocol == kSctp ||
         protocol == kUdpLite;
}

/// What follows the IP header: ports, or the QP of RoCE v2. `kind` is the one without ports.
void parse_ports(Bytes bytes, FlowKey& key) {
  if (!has_ports(key.protocol) || bytes.size() < 4) return;
  key.source_port = two_bytes(bytes, 0);
  key.destination_port = two_bytes(bytes, 2);
  ++key.kind;  // with ports
  if (key.protocol == kUdp && key.destination_port == kRocePort &&
      bytes.size() >= kUdpHeader + kBthHeader) {
    ++key.kind;  // RoCE
    key.set_qp(std::uint32_t{bytes[kUdpHeader + 5]} << 16 | two_bytes(bytes, kUdpHeader + 6));
  }
}

FlowKey parse_ipv4(Bytes bytes) {
  FlowKey key;
  if (bytes.size() < 20 || bytes[0] >> 4 != 4) return key;
  key.kind = FlowKey::kIpv4;
  std::copy_n(bytes.data() + 12, 4, key.source.begin());
  std::copy_n(bytes.data() + 16, 4, key.destination.begin());
  key.protocol = bytes[9];
  const std::size_t header = std::size_t{bytes[0] & 15U} * 4;
  const bool later_fragment = (two_bytes(bytes, 6) & 0x1fff) != 0;
  if (header >= 20 && header <= bytes.size() && !later_fragment) {
    parse_ports(bytes.subspan(header), key);
  }
  return key;
}

FlowKey parse_ipv6(Bytes bytes) {
  FlowKey key;
  if (bytes.size() < 40 || bytes[0] >> 4 != 6) return key;
  key.kind = FlowKey::kIpv6;
  std::copy_n(bytes.data() + 8, 16, key.source.begin());
  std::copy_n(bytes.data() + 24, 16, key.destination.begin());
  key.protocol = bytes[6];
  Bytes rest = bytes.subspan(40);
  bool later_fragment = false;
  while (rest.size() >= 8) {
    std::size_t length = 0;
    switch (key.protocol) {
      case 0:    // hop by hop
      case 43:   // routing
      case 60:   // destination options
      case 135:  // mobility
        length = std::size_t{rest[1]} * 8 + 8;
        break;
      case 44:  // fragment
        length = 8;
        later_fragment = (two_bytes(rest, 2) & 0xfff8) != 0;
        break;
      case 51:  // authentication
        length = std::size_t{rest[1]} * 4 + 8;
        break;
      default:
        break;
    }
    if (length == 0) break;
    key.protocol = rest[0];
    if (length > rest.size()) return key;
    rest = rest.subspan(length);
    if (later_fragment) return key;
  }
  parse_ports(rest, key);
  return key;
}

FlowKey parse_network(std::uint16_t type, Bytes bytes) {
  if (type == kIpv4Type) return parse_ipv4(bytes);
  if (type == kIpv6Type) return parse_ipv6(bytes);
  return {};
}

/// By the version in the first byte.
FlowKey parse_raw_ip(Bytes bytes) {
  if (bytes.empty()) return {};
  return bytes[0] >> 4 == 6 ? parse_ipv6(bytes) : parse_ipv4(bytes);
}

/// Behind a link header whose type field is at `at`: steps over VLAN tags.
FlowKey parse_tagged(Bytes bytes, std::size_t at, std::uint16_t& type) {
  while (bytes.size() >= at + 2) {
    type = two_bytes(bytes, at);
    at += 2;
    if (type != 0x8100 && type != 0x88a8 && type != 0x9100) {
      return parse_network(type, bytes.subspan(at));
    }
    at += 2;
  }
  return {};
}

FlowKey parse_ethernet(Bytes bytes) {
  std::uint16_t type = 0;
  FlowKey key = parse_tagged(bytes, 12, type);
  if (key.kind == FlowKey::kUnknown && bytes.size() >= 14) {
    key.kind = FlowKey::kStation;
    std::copy_n(bytes.data() + 6, 6, key.source.begin());
    std::copy_n(bytes.data(), 6, key.destination.begin());
    key.destination_port = type;
  }
  return key;
}

std::string address_of(const FlowKey& flow, const std::array<std::uint8_t, 16>& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (flow.kind == FlowKey::kStation) {
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", address[0], address[1],
                       address[2], address[3], address[4], address[5]);
  }
  if (flow.kind == FlowKey::kUnknown) return "unknown";
  ::inet_ntop(flow.kind >= FlowKey::kIpv6 ? AF_INET6 : AF_INET, address.data(), text, sizeof text);
  return flow.kind == FlowKey::kIpv6Ports || flow.kind == FlowKey::kIpv6Roce
             ? fmt::format("[{}]", text)
             : text;
}

struct Name {
  std::uint16_t number;
  std::string_view name;
};
/// As IANA writes them, in small letters.
constexpr Name kProtocols[] = {{1, "icmp"},  {2, "igmp"},   {4, "ipip"},    {6, "tcp"},
                               {17, "udp"},  {33, "dccp"},  {41, "ipv6"},   {47, "gre"},
                               {50, "esp"},  {51, "ah"},    {58, "icmpv6"}, {89, "ospf"},
                               {103, "pim"}, {112, "vrrp"}, {132, "sctp"},  {136, "udplite"}};
constexpr Name kTypes[] = {{0x0800, "ipv4"}, {0x0806, "arp"},  {0x86dd, "ipv6"},  {0x8808, "pause"},
                           {0x8809, "lacp"}, {0x8847, "mpls"}, {0x8863, "pppoe"}, {0x8864, "pppoe"},
                           {0x88cc, "lldp"}, {0x88f7, "ptp"},  {0x8915, "roce1"}};

template <std::size_t N>
std::string name_in(const Name (&names)[N], std::uint16_t number, const char* other) {
  for (const Name& name : names) {
    if (name.number == number) return std::string(name.name);
  }
  return fmt::format(fmt::runtime(other), number);
}

}  // namespace

std::string to_string(const FlowKey& flow) {
  const std::string from = address_of(flow, flow.source), to = address_of(flow, flow.destination);
  switch (flow.kind) {
    case FlowKey::kUnknown:
      return "unknown";
    case FlowKey::kStation:
      return fmt::format("{}>{}/{}", from, to, name_in(kTypes, flow.destination_port, "0x{:04x}"));
    case FlowKey::kIpv4Roce:
    case FlowKey::kIpv6Roce:
      return fmt::format("{}>{}:qp{}/roce", from, to, flow.qp());
    case FlowKey::kIpv4Ports:
    case FlowKey::kIpv6Ports:
      return fmt::format("{}:{}>{}:{}/{}", from, flow.source_port, to, flow.destination_port,
                         name_in(kProtocols, flow.protocol, "{}"));
    default:
      return fmt::format("{}>{}/{}", from, to, name_in(kProtocols, flow.protocol, "{}"));
  }
}

std::string sender_of(const FlowKey& flow) { return address_of(flow, flow.source); }

FlowKey parse_frame(int link_type, std::span<const std::uint8_t> bytes) {
  std::uint16_t type = 0;
  switch (link_type) {
    case kLinkEthernet:
      return parse_ethernet(bytes);
    case kLinkRaw:
    case kLinkRawOld:
    case kLinkIpv4:
    case kLinkIpv6:
      return parse_raw_ip(bytes);
    case kLinkNull:
    case kLinkLoop:  // an address family of 4 bytes, whose numbers differ from system to system
      return bytes.size() > 4 ? parse_raw_ip(bytes.subspan(4)) : FlowKey{};
    case kLinkLinuxCooked:
      return parse_tagged(bytes, 14, type);
    case kLinkLinuxCooked2:  // the type stands first, 20 bytes before what it tells of
      return bytes.size() > 20 ? parse_network(two_bytes(bytes, 0), bytes.subspan(20)) : FlowKey{};
    default:
      return {};
  }
}

}  // namespace greynic::burst
