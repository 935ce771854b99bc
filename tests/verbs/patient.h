#pragma once

/// A measurement on a machine that may get no processor for the whole of a short run: an emulated
/// one on a busy host. What then comes is "measure longer", and so it does.

#include <gtest/gtest.h>

#include "greynic/target/target.h"

namespace greynic {

inline Observation measure_patiently(target::Target& target, target::MeasureRequest request) {
  constexpr std::chrono::seconds kLongest{20};
  for (;; request.duration *= 4) {
    const auto observed = target::measure_one(target, request);
    EXPECT_TRUE(observed) << (observed ? "" : observed.error().message);
    const bool starved = observed && observed->outcome == Outcome::kTooShort;
    if (!starved || request.duration * 4 > kLongest) return observed.value_or(Observation{});
  }
}

}  // namespace greynic
