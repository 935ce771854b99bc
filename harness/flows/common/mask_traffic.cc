#include "common/mask_traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <set>

#include "greynic/core/wire_numbers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr U128 kClassBits = 0xffff;  // lower bits of the source MAC; kMostMasks fit
constexpr std::uint64_t kLocalMac = 0x020000000000;
constexpr int kShortestPrefix = 8;  // shorter ones leave too few values for rules
constexpr int kPrefixes = 32 - kShortestPrefix + 1;
constexpr std::uint32_t kMostRulesPerMask = 4096;

std::uint32_t prefix_bits(int length) { return 0xffffffffu << (32 - length); }

struct ClassMask {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint16_t port = 0;
};

/// Distinct masks in a random order: pairs of prefix lengths first, then the same with ever longer
/// prefixes of the destination port.
std::vector<ClassMask> class_masks(std::uint32_t count, std::mt19937_64& random) {
  std::vector<ClassMask> masks;
  for (int port = 0; port <= 16 && masks.size() < count; ++port) {
    std::vector<ClassMask> round;
    for (int src = kShortestPrefix; src <= 32; ++src) {
      for (int dst = kShortestPrefix; dst <= 32; ++dst) {
        round.push_back({prefix_bits(src), prefix_bits(dst),
                         static_cast<std::uint16_t>(0xffffu << (16 - port))});
      }
    }
    std::shuffle(round.begin(), round.end(), random);
    masks.insert(masks.end(), round.begin(), round.end());
  }
  masks.resize(count);
  return masks;
}
static_assert(kPrefixes * kPrefixes * 17 >= static_cast<int>(kMostMasks));

MaskTraffic plain_traffic(const MaskTrafficShape& shape, const std::string& sink,
                          std::mt19937_64& random) {
  MaskTraffic made;
  made.rules.rules.push_back({.actions = {Action::forward(sink)}});
  for (std::uint32_t i = 0; i < std::max(1u, shape.flows); ++i) {
    Packet packet;
    packet.set(F::kEthernetSrc, kLocalMac);
    packet.set(F::kEtherType, ether_type::kIpv4);
    packet.set(F::kIpProtocol, ip_protocol::kUdp);
    packet.set(F::kIpv4Src, static_cast<std::uint32_t>(random()));
    packet.set(F::kIpv4Dst, i + 1);
    packet.set(F::kL4SrcPort, 1024);
    packet.set(F::kL4DstPort, 80);
    made.traffic.flows.push_back({.packet = packet});
  }
  return made;
}

FlowRule class_rule(std::uint32_t number) {
  FlowRule rule;
  rule.match.set(F::kEthernetSrc, number, kClassBits);
  rule.actions = {{.kind = ActionKind::kSetField,
                   .field = F::kMetadata,
                   .value = number,
                   .bits = full_mask(F::kMetadata)},
                  Action::jump(1)};
  return rule;
}

}  // namespace

Result<MaskTraffic> mask_traffic(const MaskTrafficShape& shape, const std::string& sink,
                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (shape.masks == 0) return plain_traffic(shape, sink, random);
  if (shape.masks > kMostMasks || shape.rules_per_mask > kMostRulesPerMask) {
    return fail(ErrorCode::kTooBig,
                fmt::format("{} masks with {} rules each: at most {} masks and {} rules with each",
                            shape.masks, shape.rules_per_mask, kMostMasks, kMostRulesPerMask));
  }
  MaskTraffic made;
  const auto masks = class_masks(shape.masks, random);
  std::vector<std::vector<ClassMask>> values(shape.masks);  // of the rules of each class
  for (std::uint32_t number = 0; number < shape.masks; ++number) {
    const ClassMask& mask = masks[number];
    made.rules.rules.push_back(class_rule(number));
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>> taken;
    while (values[number].size() < shape.rules_per_mask) {
      const std::uint64_t bits = random();
      const ClassMask value = {static_cast<std::uint32_t>(bits) & mask.src,
                               static_cast<std::uint32_t>(bits >> 32) & mask.dst,
                               static_cast<std::uint16_t>(random() & mask.port)};
      if (!taken.emplace(value.src, value.dst, value.port).second) continue;
      values[number].push_back(value);
      FlowRule rule;
      rule.table = 1;
      rule.match.set(F::kMetadata, number);
      rule.match.set(F::kEtherType, ether_type::kIpv4);
      rule.match.set(F::kIpProtocol, ip_protocol::kUdp);
      rule.match.set(F::kIpv4Src, value.src, mask.src);
      rule.match.set(F::kIpv4Dst, value.dst, mask.dst);
      rule.match.set(F::kL4DstPort, value.port, mask.port);
      rule.actions = {Action::forward(sink)};
      made.rules.rules.push_back(std::move(rule));
    }
  }
  const std::uint32_t flows = std::max(shape.flows, shape.masks);
  for (std::uint32_t i = 0; i < flows; ++i) {
    const std::uint32_t number = i % shape.masks;
    const ClassMask& mask = masks[number];
    const ClassMask& value = values[number][i / shape.masks % shape.rules_per_mask];
    const std::uint64_t bits = random();
    Packet packet;
    packet.set(F::kEthernetSrc, kLocalMac | number);
    packet.set(F::kEthernetDst, kLocalMac | 0x010000);
    packet.set(F::kEtherType, ether_type::kIpv4);
    packet.set(F::kIpProtocol, ip_protocol::kUdp);
    packet.set(F::kIpv4Src, value.src | (static_cast<std::uint32_t>(bits) & ~mask.src));
    packet.set(F::kIpv4Dst, value.dst | (static_cast<std::uint32_t>(bits >> 32) & ~mask.dst));
    // The source port is in no mask: it alone makes the flows of one rule distinct.
    packet.set(F::kL4SrcPort, 1 + i % 65535);
    packet.set(F::kL4DstPort, value.port | (static_cast<std::uint16_t>(random()) & ~mask.port));
    made.traffic.flows.push_back({.packet = packet});
  }
  return made;
}

}  // namespace greynic::flows
