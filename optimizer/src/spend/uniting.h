#pragma once

/// Which matchers may become one. The more may, the fewer packets try, and the harder the layout is to prove.

#include <cstdint>

namespace greynic::optimizer::spend {

enum class Uniting : std::uint8_t {
  kAny,
  /// The proof keeps in mind which packets matchers of few entries sent away, as guards do: two of these do not
  /// become one that has more.
  kFewStayFew,
  kNone,
};

}  // namespace greynic::optimizer::spend
