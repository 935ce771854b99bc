#pragma once

/// A private Open vSwitch for a test, or the reason why there is none.

#include <gtest/gtest.h>

#include "ovs/private_switch.h"

#define GREYNIC_NEEDS_OVS()                                            \
  if (const auto obstacle = greynic::flows::PrivateSwitch::obstacle(); \
      !obstacle.why_not.empty()) {                                     \
    GTEST_SKIP() << obstacle.why_not << "; " << obstacle.remedy;       \
  }                                                                    \
  static_assert(true)
