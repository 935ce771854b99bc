#pragma once

/// Small rule sets full of overlaps, over few bits, so that every packet can be looked at.

#include <cstdint>
#include <random>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic {

/// The fields in play: together 10 bits that matter, so 1,024 packets are all there are.
struct SmallSpace {
  static constexpr int kBits = 10;
  /// The packet whose bits are those of `number`.
  static Packet packet(unsigned number) {
    Packet packet;
    packet.set(MatchField::kIpv4Src, number & 0xf);
    packet.set(MatchField::kIpv4Dst, number >> 4 & 0xf);
    packet.set(MatchField::kIpProtocol, number >> 8 & 0x3);
    return packet;
  }
};

/// `count` rules; each looks at a random part of the bits. `effects` many different actions.
inline RuleSet small_random_rules(std::size_t count, unsigned effects, std::uint64_t seed,
                                  std::uint32_t tables = 1) {
  std::mt19937_64 random(seed);
  RuleSet set;
  for (std::size_t i = 0; i < count; ++i) {
    FlowRule rule;
    // Prefix-like and arbitrary masks, and enough wide ones that overlaps abound.
    const auto bits = [&](unsigned all) { return random() % 3 == 0 ? 0 : random() & all; };
    const auto part = [&](MatchField field, unsigned all) {
      const auto mask = bits(all);  // first, whatever the compiler
      rule.match.set(field, random() & all, mask);
    };
    part(MatchField::kIpv4Src, 0xf);
    part(MatchField::kIpv4Dst, 0xf);
    part(MatchField::kIpProtocol, 0x3);
    rule.priority = static_cast<RulePriority>(random() % (count / 2 + 1));
    rule.table = static_cast<std::uint32_t>(random() % tables);
    rule.actions = {Action::forward("p" + std::to_string(random() % effects))};
    rule.from = {static_cast<std::uint32_t>(i)};
    set.rules.push_back(std::move(rule));
  }
  return set;
}

}  // namespace greynic
