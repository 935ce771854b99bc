#pragma once

/// The filters of an interface as text and back, attribute by attribute: whatever flower filter was
/// there returns, also one with keys or actions that greynic has no words for.

#include <linux/rtnetlink.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/os/netlink.h"

namespace greynic::flows {

/// Is it a filter, not the announcement of a preference?
[[nodiscard]] bool is_filter(const os::NetlinkAnswer& answer);

/// What is in a filter or chain behind its header; both need a payload of a whole tcmsg.
[[nodiscard]] os::ByteView attributes_of(const os::NetlinkAnswer& answer);
[[nodiscard]] tcmsg header_of(os::ByteView payload);
[[nodiscard]] std::uint32_t chain_of(const os::NetlinkAnswer& answer);

/// kUnsupported, with the filter's place and what to do.
[[nodiscard]] tl::unexpected<Error> cannot_return(const os::NetlinkAnswer& filter,
                                                  std::string_view why);

/// The message that adds a filter again. With `trial_chain` it goes there, and never into hardware.
[[nodiscard]] os::NetlinkMessage filter_again(
    os::ByteView payload, int interface_number,
    std::optional<std::uint32_t> trial_chain = std::nullopt);

/// kUnsupported for filters that could not be put back as they are, by what is seen of them:
/// another kind than flower, a tag of unknown type, actions shared with others.
[[nodiscard]] Result<std::string> snapshot_text(bool ingress,
                                                const std::vector<os::NetlinkAnswer>& filters);

struct TcSnapshot {
  bool ingress = false;  ///< a queueing discipline for filters was there
  std::vector<os::NetlinkMessage> filters;
};
[[nodiscard]] Result<TcSnapshot> read_snapshot(const std::string& text, int interface_number);

}  // namespace greynic::flows
