#pragma once

/// Captures, read by libpcap, replayed through a queue (greynic/burst/replay.h).

#include <functional>
#include <string>

#include "greynic/burst/replay.h"

namespace greynic::capture {

/// Is libpcap part of this build?
[[nodiscard]] bool can_read_captures();

/// A pcap or pcapng file; "-" is stdin. `progress` is told the share that is read. kMissing without
/// libpcap, kBadInput for what is no capture. A capture that ends too early, or a record that makes
/// no sense, leaves what came before it: Findings::incomplete then names the packet and the reason.
[[nodiscard]] Result<burst::Findings> replay_capture(
    const std::string& path, const burst::ReplayOptions& options,
    const burst::Replay::Marked& marked = {}, const std::function<void(double)>& progress = {});

}  // namespace greynic::capture
