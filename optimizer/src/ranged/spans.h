#pragma once

/// Ports from a lowest to a highest, and the boxes that they make of two port fields.

#include <array>
#include <cstdint>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer::ranged {

inline constexpr std::size_t kPortFields = 2;  // source and destination
inline constexpr std::array<MatchField, kPortFields> kPorts = {MatchField::kL4SrcPort,
                                                               MatchField::kL4DstPort};

struct Prefix {
  std::uint32_t value;
  std::uint32_t mask;
  auto operator<=>(const Prefix&) const = default;
};

/// Ports from low to high, as numbers of a slot.
struct Span {
  std::uint32_t low;
  std::uint32_t high;
  auto operator<=>(const Span&) const = default;
};
using Spans = std::array<Span, kPortFields>;

[[nodiscard]] bool disjoint(const Spans& a, const Spans& b);
[[nodiscard]] bool disjoint(const std::vector<Spans>& a, const std::vector<Spans>& b);

/// Adds to `left` what of a box lies outside of another, in up to four boxes.
void take_away(Spans box, const Spans& taken, std::vector<Spans>& left);

/// What of some boxes lies outside of others.
[[nodiscard]] std::vector<Spans> without(std::vector<Spans> boxes, const std::vector<Spans>& taken);

/// Whether spans are prefixes, all of one length.
class OneLength {
 public:
  void add(const Span& span);
  [[nodiscard]] bool holds() const { return aligned_ && same_; }
  /// Of these prefixes; `all`: of single ports.
  [[nodiscard]] std::uint32_t mask(std::uint32_t all) const { return all & ~(width_ - 1); }

 private:
  std::uint32_t width_ = 0;
  bool same_ = true;
  bool aligned_ = true;
};

}  // namespace greynic::optimizer::ranged
