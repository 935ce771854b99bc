#pragma once

/// The queueing discipline of a device, and whether the rule can work there.

#include <string>

#include "greynic/core/result.h"

namespace greynic::live {

struct Discipline {
  int interface_number = 0;
  bool has_classes = false;  ///< htb
};

/// In the network namespace of the calling thread. Errors as those of LiveProbe::open.
[[nodiscard]] Result<Discipline> discipline_of(const std::string& interface);

}  // namespace greynic::live
