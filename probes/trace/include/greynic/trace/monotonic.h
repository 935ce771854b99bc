#pragma once

/// The clock that programs in the kernel stamp packets with.

#include <cstdint>
#include <ctime>

namespace greynic::trace {

inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace greynic::trace
