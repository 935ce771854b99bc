#pragma once

/// Which cases of a test run by day, and which only when GREYNIC_NIGHTLY is set.

#include <cstdlib>
#include <string>

namespace greynic {

inline bool by_night() { return std::getenv("GREYNIC_NIGHTLY") != nullptr; }

/// A set of 10,000 rules takes half a minute in one test or another.
inline bool waits_for_night(const std::string& set) {
  return set.find("_10k") != std::string::npos && !by_night();
}

}  // namespace greynic
