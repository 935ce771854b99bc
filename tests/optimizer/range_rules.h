#pragma once

/// Small rule sets with port ranges, written out as readers do, over so few values that every packet
/// can be looked at.

#include <random>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic {

/// Ports below 16 matter, and all others are alike: 16 stands for them.
struct RangeSpace {
  static constexpr unsigned kPorts = 17;
  static constexpr unsigned kAddresses = 8;
  static constexpr unsigned kPackets = kPorts * kPorts * kAddresses;
  static Packet packet(unsigned number) {
    const auto port = [](unsigned value) { return value == 16 ? U128{40'000} : U128{value}; };
    Packet packet;
    packet.set(MatchField::kIpv4Dst, number % kAddresses);
    packet.set(MatchField::kL4SrcPort, port(number / kAddresses % kPorts));
    packet.set(MatchField::kL4DstPort, port(number / kAddresses / kPorts));
    return packet;
  }
};

inline RuleSet range_rules(std::size_t lines, unsigned effects, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RuleSet set;
  for (std::uint32_t line = 0; line < lines; ++line) {
    FlowRule rule;
    rule.priority = line;
    rule.from = {line};
    rule.actions = {Action::forward("p" + std::to_string(random() % effects))};
    const unsigned bits = random() % 3 == 0 ? 0 : random() % 2 == 0 ? 7 : 6;
    rule.match.set(MatchField::kIpv4Dst, random() & 7, bits);
    const auto ports = [&](MatchField field) -> std::vector<FieldMatch> {
      const auto low = static_cast<unsigned>(random() % 16);
      switch (random() % 4) {
        case 0:
          return {{field, 0, 0}};
        case 1:
          return prefixes_of({field, low, low});
        case 2:
          return prefixes_of({field, low, 65535});
        default:
          return prefixes_of({field, low, low + random() % (16 - low)});
      }
    };
    const auto sources = ports(MatchField::kL4SrcPort);
    const auto destinations = ports(MatchField::kL4DstPort);
    for (const FieldMatch& source : sources) {
      rule.match.set(source.field, source.value, source.bits);
      for (const FieldMatch& destination : destinations) {
        rule.match.set(destination.field, destination.value, destination.bits);
        set.rules.push_back(rule);
      }
    }
  }
  return set;
}

}  // namespace greynic
