#pragma once

/// The queueing discipline of a device, and whether the rule can work there.

#include <cstdint>
#include <string>

#include "greynic/core/result.h"

namespace greynic::live {

struct Discipline {
  int interface_number = 0;
  bool has_classes = false;           ///< htb
  bool has_one_queue = false;         ///< neither classes nor several roots
  std::uint64_t bits_per_second = 0;  ///< of tbf; 0: it does not say
};

/// In the network namespace of the calling thread. Errors as those of LiveProbe::open.
[[nodiscard]] Result<Discipline> discipline_of(const std::string& interface);

}  // namespace greynic::live
