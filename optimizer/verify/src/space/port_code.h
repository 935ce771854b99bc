#pragma once

/// Ports in a code of their own. All that two lists of rules ask of a port is on which side of some
/// boundaries it lies, so ports between two of them are alike. A tree asks for one boundary after
/// another, first for those that take the fewest ranges apart; the answers are the bits of the code.
/// 1024:65535 is six prefixes of ports, and one of codes where 1024 is asked for first.
///
/// Each code stands for some ports: where a branch ends early, the bits left say nothing.

#include <cstdint>
#include <map>
#include <vector>

namespace greynic::verify {

inline constexpr std::uint32_t kLastPort = 0xffff;

/// Ports from low to high.
struct PortSpan {
  std::uint32_t low = 0;
  std::uint32_t high = kLastPort;
  auto operator<=>(const PortSpan&) const = default;
};

class PortCode {
 public:
  /// Some rule asks for these ports. All of them first, then close().
  void look_at(const PortSpan& span);
  void close();

  [[nodiscard]] unsigned bits() const { return bits_; }  ///< of a code, 0..16
  struct Prefix {
    std::uint32_t value;
    std::uint32_t fixed;
  };
  /// Codes of these ports, which look_at() was told of.
  [[nodiscard]] std::vector<Prefix> prefixes_of(const PortSpan& span) const;
  /// The lowest port that has the code.
  [[nodiscard]] std::uint32_t port_of(std::uint32_t code) const;

 private:
  struct Node {
    PortSpan ports;
    std::uint32_t depth;
    std::uint32_t code;       ///< its prefix, in bits() bits
    std::uint32_t below = 0;  ///< the node for ports below its boundary; 0: a leaf
    std::uint32_t above = 0;
  };
  struct Asked {
    PortSpan ports;
    std::uint32_t rules;
  };
  /// `asked`: what goes through the node without taking it whole. The number of the node.
  std::uint32_t grow(Node node, const std::vector<Asked>& asked);
  [[nodiscard]] std::uint32_t best_boundary(const Node& node,
                                            const std::vector<Asked>& asked) const;

  std::map<PortSpan, std::uint32_t> asked_;  ///< how many rules ask for these ports
  std::vector<std::uint32_t> boundaries_;    ///< the first port above each, ascending
  std::vector<Node> nodes_;
  unsigned bits_ = 0;
};

}  // namespace greynic::verify
