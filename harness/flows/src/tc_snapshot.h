#pragma once

/// The filters of an interface as text and back, attribute by attribute: whatever flower filter was
/// there returns, also one with keys or actions that greynic has no words for.

#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "netlink.h"

namespace greynic::flows {

/// Is it a filter, not the announcement of a preference?
[[nodiscard]] bool is_filter(const NetlinkAnswer& answer);

/// kUnsupported for filters of another kind than flower, which could not be put back.
[[nodiscard]] Result<std::string> snapshot_text(bool ingress,
                                                const std::vector<NetlinkAnswer>& filters);

struct TcSnapshot {
  bool ingress = false;  ///< a queueing discipline for filters was there
  std::vector<NetlinkMessage> filters;
};
[[nodiscard]] Result<TcSnapshot> read_snapshot(const std::string& text, int interface_number);

}  // namespace greynic::flows
