#pragma once

/// How much tests do that compute. A sanitizer makes code ten times as slow, and tests at -O0 more
/// than that; what it looks for shows in small cases too.

namespace greynic {

#ifdef GREYNIC_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// `whole`, or `less` under a sanitizer.
template <typename Size>
constexpr Size sized(Size whole, Size less) {
  return kSanitized ? less : whole;
}

}  // namespace greynic
