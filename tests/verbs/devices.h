#pragma once

/// The two devices that suites run on: Soft-RoCE's, unless the environment names others.

#include <cstdlib>
#include <string>

namespace greynic {

inline std::string device_from(const char* variable, const char* otherwise) {
  const char* const name = std::getenv(variable);
  return name != nullptr ? name : otherwise;
}
inline std::string near_device() { return device_from("GREYNIC_NEAR_DEVICE", "rxe0"); }
inline std::string far_device() { return device_from("GREYNIC_FAR_DEVICE", "rxe1"); }

}  // namespace greynic
