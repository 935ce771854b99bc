#pragma once

/// A target whose device can be brought back to the state in which it was opened, beside what
/// Target has. State that outlives a load (ScalaCN's symptom S9) is gone then.
///
///     if (auto* device = dynamic_cast<target::Resettable*>(&target)) done = device->reset();

#include "greynic/core/result.h"

namespace greynic::target {

class Resettable {
 public:
  virtual ~Resettable() = default;
  [[nodiscard]] virtual Result<void> reset() = 0;
};

}  // namespace greynic::target
