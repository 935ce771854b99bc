#pragma once

#ifdef GREYNIC_WITH_REMOTE

#include "greynic/target/far_counters.h"

namespace greynic::loop {

/// Counters that `greynic zero rnic` publishes on another host, READ through its `greynic zero agent`.
/// kMissing: nobody publishes counters of such a device there. Of the options, `certificates` counts.
[[nodiscard]] Result<std::unique_ptr<target::FarCounters>> open_far_counters(
    const std::string& where, const std::map<std::string, std::string>& options);

}  // namespace greynic::loop

#endif
