#pragma once

/// What the measuring targets share: what they can be set to, which packets are sent how often, and
/// on what machine.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/mask_traffic.h"
#include "common/packet_bytes.h"
#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/target/target.h"

namespace greynic::flows {

/// Most distinct packets that a source sends: one replay's, which a port's buffers hold.
inline constexpr double kMostFlows = 16384;
inline constexpr double kMostPayloadBytes = 1472;  ///< in a frame of 1514 bytes

/// Why the configuration cannot be set up: a factor that means nothing to this device and is not at
/// its standard, or a packet or a number of flows that is too large. Empty when it can.
[[nodiscard]] std::string unsupported(const Configuration& configuration,
                                      std::span<const std::string_view> factors,
                                      std::string_view device);
[[nodiscard]] MaskTrafficShape shape_of(const Configuration& configuration);

/// So many copies of each flow's packet as its weight asks of `slots`, at least one, then shuffled:
/// what the source replays is a fair sample of the traffic in a random order. Indices of flows.
[[nodiscard]] std::vector<std::size_t> replay_order(const Traffic& traffic, std::size_t slots,
                                                    std::uint64_t seed);

/// The frames that are sent, in order. kTooBig for traffic of more than kMostFlows flows.
[[nodiscard]] Result<std::vector<Frame>> frames_of(const Traffic& traffic, std::size_t slots,
                                                   std::size_t payload_bytes, std::uint64_t seed,
                                                   const TunnelEnd* end = nullptr);

/// Whether a source can send it, wrapped for `end` where it came through tunnels. kTooBig: more
/// than kMostFlows flows; kUnsupported names every field that stands against it.
[[nodiscard]] Result<void> check_sendable(const Traffic& traffic, const TunnelEnd* end = nullptr);

/// The packets of a rule set when nobody says more: one for each rule of table 0, as often as the
/// rule says that it is hit.
[[nodiscard]] Traffic traffic_of_rules(const RuleSet& rules);

/// The traffic that a layout is measured under, or traffic_of_rules when none is given; an error
/// when it cannot be sent.
[[nodiscard]] Result<Traffic> sendable(const Traffic* given, const RuleSet& rules,
                                       const TunnelEnd* end = nullptr);

/// Calls `make` for each port that the rules forward to.
[[nodiscard]] Result<void> for_each_port(
    const RuleSet& rules, const std::function<Result<void>(const std::string& port)>& make);

/// Hands the observation of each request to the sink, until that has enough.
[[nodiscard]] Result<void> measure_each(
    std::span<const target::MeasureRequest> requests, const target::ObservationSink& sink,
    const std::function<Result<Observation>(const target::MeasureRequest&)>& measure);

/// Payload of one packet. The factor table's standard of 64 KiB is a verbs message; a packet stands
/// for one that fits.
[[nodiscard]] double payload_of(const Configuration& configuration);

/// Host, kernel and CPU for an observation's environment.
[[nodiscard]] std::map<std::string, std::string> host_environment();

}  // namespace greynic::flows
