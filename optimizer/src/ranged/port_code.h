#pragma once

/// Ports of a table in a code of their own, so that cuts by some bits of it are cuts by ranges.
///
/// A tree asks on which side of one end of a range after another a port lies, first for those that take the
/// fewest ranges apart; its answers are the bits. So 1024:65535 is one prefix of codes where 1024 is asked for
/// first, and what parts ports by the first bit parts them there. Where a branch ends early, its ports look at
/// all bits, and those left are 0.

#include <cstdint>
#include <map>
#include <vector>

#include "src/ranged/spans.h"

namespace greynic::optimizer::ranged {

class PortCode {
 public:
  /// So many units ask for these ports. All of them first, then close().
  void ask(const Span& span, std::uint32_t units = 1) { asked_[span] += units; }
  /// `bits`: of a port, and of its code.
  void close(std::size_t bits);

  [[nodiscard]] std::uint32_t code_of(std::uint32_t port) const;
  /// Codes of ports that some unit asks for, or of all.
  [[nodiscard]] std::vector<Prefix> prefixes_of(const Span& span) const;
  /// The ports of a prefix.
  [[nodiscard]] Span span_of(const Prefix& prefix) const;

 private:
  struct Node {
    Span ports;
    std::size_t depth = 0;
    std::uint32_t code = 0;
    std::uint32_t below = 0;  ///< the node for ports below its boundary; 0: a leaf
    std::uint32_t above = 0;
  };
  struct Asked {
    Span ports;
    std::uint32_t units;
  };
  /// `asked`: what takes a part of the node.
  void grow(std::uint32_t number, const std::vector<Asked>& asked);
  [[nodiscard]] std::uint32_t best_boundary(const Node& node,
                                            const std::vector<Asked>& asked) const;
  [[nodiscard]] std::uint32_t bit_at(std::size_t depth) const {
    return std::uint32_t{1} << (bits_ - 1 - depth);
  }

  std::map<Span, std::uint32_t> asked_;
  std::size_t bits_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace greynic::optimizer::ranged
