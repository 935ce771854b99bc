#pragma once

/// The way to the rte_flow driver for code that knows nothing of DPDK's headers.

#include <memory>
#include <string>

#include "greynic/flows/flow_driver.h"

namespace greynic::flows {

/// RteDriver::open.
[[nodiscard]] Result<std::unique_ptr<FlowDriver>> open_rte(const std::string& device);

}  // namespace greynic::flows
