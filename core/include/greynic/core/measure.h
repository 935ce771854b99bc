#pragma once

/// The one table of measures: every number that greynic itself takes, with its unit, which
/// direction is better, and how it is drawn. The unit is in the name: bandwidth_gbps is goodput,
/// latency is half a round trip. exec: targets may add measures of their own; which direction of
/// those is better nobody can know, so it has to be asked for (compare --better), never guessed.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace greynic {

/// kNeither: the number describes the run, and no value of it is good or bad.
enum class Better : std::uint8_t { kMore, kLess, kNeither };
[[nodiscard]] std::string_view to_string(Better better);                  ///< "more"
[[nodiscard]] std::optional<Better> better_named(std::string_view name);  ///< "more", "less"

/// Axis on which a measure is drawn.
enum class Axis : std::uint8_t { kLinear, kLogarithmic, kShare };

struct MeasureInfo {
  std::string_view name;
  std::string_view unit;  ///< as people read it: "Gbit/s", "us", "%"
  Better better;
  Axis axis;
  std::string_view meaning;
};

[[nodiscard]] std::span<const MeasureInfo> known_measures();
/// Null for a measure that greynic does not know.
[[nodiscard]] const MeasureInfo* find_measure(std::string_view name);
/// Empty for a measure that greynic does not know.
[[nodiscard]] std::optional<Better> better_direction(std::string_view name);

namespace measure {
inline constexpr std::string_view kBandwidth = "bandwidth_gbps";
inline constexpr std::string_view kMessageRate = "message_rate_mops";
inline constexpr std::string_view kPacketRate = "packet_rate_mpps";
inline constexpr std::string_view kLatencyP50 = "latency_us_p50";
inline constexpr std::string_view kLatencyP99 = "latency_us_p99";
inline constexpr std::string_view kLatencyP999 = "latency_us_p999";
inline constexpr std::string_view kLatencyMean = "latency_us_mean";
inline constexpr std::string_view kLoss = "loss_share";
}  // namespace measure

}  // namespace greynic
