#include "tc/flower_mask_traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "greynic/core/wire_numbers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr std::uint32_t kMostRulesPerMask = 4096;
constexpr std::uint32_t kFirstPort = 1024;
constexpr std::uint64_t kLocalMac = 0x020000000000;

/// The `number`th pair of prefix lengths: 1 to 32 for either address.
U128 prefix(std::uint32_t length) { return U128{0xffffffffU << (32 - length)} & 0xffffffffU; }

}  // namespace

Result<MaskTraffic> flower_mask_traffic(const MaskTrafficShape& shape, std::uint64_t seed) {
  if (shape.masks > kMostFlowerMasks || shape.rules_per_mask > kMostRulesPerMask) {
    return fail(
        ErrorCode::kTooBig,
        fmt::format("{} masks with {} rules each: at most {} masks and {} rules with each",
                    shape.masks, shape.rules_per_mask, kMostFlowerMasks, kMostRulesPerMask));
  }
  std::mt19937_64 random(seed);
  MaskTraffic made;
  std::vector<std::uint32_t> shapes(kMostFlowerMasks);
  for (std::uint32_t i = 0; i < kMostFlowerMasks; ++i) shapes[i] = i;
  // By hand, because std::shuffle may differ from library to library.
  for (std::size_t i = shapes.size(); i > 1; --i) std::swap(shapes[i - 1], shapes[random() % i]);
  const auto src = static_cast<std::uint32_t>(random());
  const auto dst = static_cast<std::uint32_t>(random());
  const std::uint32_t masks = std::max(shape.masks, 1U);
  for (std::uint32_t number = 0; number < shape.masks; ++number) {
    for (std::uint32_t i = 0; i < shape.rules_per_mask; ++i) {
      FlowRule rule;
      rule.priority = number;
      const U128 src_bits = prefix(shapes[number] % 32 + 1);
      const U128 dst_bits = prefix(shapes[number] / 32 + 1);
      rule.match.set(F::kEtherType, ether_type::kIpv4);
      rule.match.set(F::kIpProtocol, ip_protocol::kUdp);
      rule.match.set(F::kIpv4Src, src & src_bits, src_bits);
      rule.match.set(F::kIpv4Dst, dst & dst_bits, dst_bits);
      rule.match.set(F::kL4SrcPort, kFirstPort + i);
      rule.match.set(F::kL4DstPort, kFirstPort + number);
      rule.actions = {Action::drop()};
      made.rules.rules.push_back(std::move(rule));
    }
  }
  if (shape.masks == 0) {
    FlowRule all;
    all.actions = {Action::drop()};
    made.rules.rules.push_back(all);
  }
  const std::uint32_t flows = std::max(shape.flows, masks);
  for (std::uint32_t i = 0; i < flows; ++i) {
    Packet packet;
    packet.set(F::kEthernetSrc, kLocalMac | i);
    packet.set(F::kEthernetDst, kLocalMac | 0x010000);
    packet.set(F::kEtherType, ether_type::kIpv4);
    packet.set(F::kIpProtocol, ip_protocol::kUdp);
    packet.set(F::kIpv4Src, src);
    packet.set(F::kIpv4Dst, dst);
    packet.set(F::kL4SrcPort, kFirstPort + i / masks % shape.rules_per_mask);
    packet.set(F::kL4DstPort, kFirstPort + i % masks);
    made.traffic.flows.push_back({.packet = packet});
  }
  return made;
}

}  // namespace greynic::flows
