#include "greynic/core/measure.h"

#include <algorithm>

namespace greynic {
namespace {

constexpr MeasureInfo kMeasures[] = {
    {measure::kBandwidth, "Gbit/s", Better::kMore, Axis::kLinear, "goodput: payload that arrives"},
    {"bandwidth_gbps_peak", "Gbit/s", Better::kMore, Axis::kLinear, "goodput of the best interval"},
    {"bandwidth_gbps_port1", "Gbit/s", Better::kMore, Axis::kLinear, "goodput of the first port"},
    {"bandwidth_gbps_port2", "Gbit/s", Better::kMore, Axis::kLinear, "goodput of the second port"},
    {"fleet_bandwidth_gbps", "Gbit/s", Better::kMore, Axis::kLinear, "goodput of a whole fleet"},
    {"sender_gbps_min", "Gbit/s", Better::kMore, Axis::kLinear, "goodput of the slowest sender"},
    {"sender_gbps_max", "Gbit/s", Better::kNeither, Axis::kLinear, "goodput of the fastest sender"},
    {"sent_gbps", "Gbit/s", Better::kNeither, Axis::kLinear, "payload sent, arrived or not"},
    {measure::kMessageRate, "million/s", Better::kMore, Axis::kLinear, "messages a second"},
    {"message_rate_mops_port1", "million/s", Better::kMore, Axis::kLinear,
     "messages a second of the first port"},
    {"message_rate_mops_port2", "million/s", Better::kMore, Axis::kLinear,
     "messages a second of the second port"},
    {measure::kPacketRate, "million/s", Better::kMore, Axis::kLinear, "packets a second"},
    {"transaction_rate_mops", "million/s", Better::kMore, Axis::kLinear, "round trips a second"},
    {measure::kLatencyP50, "us", Better::kLess, Axis::kLogarithmic, "median of half a round trip"},
    {measure::kLatencyP99, "us", Better::kLess, Axis::kLogarithmic,
     "99th percentile of half a round trip"},
    {measure::kLatencyP999, "us", Better::kLess, Axis::kLogarithmic,
     "99.9th percentile of half a round trip"},
    {measure::kLatencyMean, "us", Better::kLess, Axis::kLogarithmic, "mean of half a round trip"},
    {"latency_us_min", "us", Better::kLess, Axis::kLogarithmic, "shortest half round trip"},
    {"latency_us_max", "us", Better::kLess, Axis::kLogarithmic, "longest half round trip"},
    {measure::kLoss, "share", Better::kLess, Axis::kShare, "messages that were lost"},
    {"pause_share", "share", Better::kLess, Axis::kShare, "time in which a sender had to pause"},
    {"fairness", "index", Better::kMore, Axis::kShare,
     "Jain's index over senders: 1 when all get the same"},
    {"burst_count", "count", Better::kLess, Axis::kLinear,
     "bursts in the queue in front of the server"},
    {"burst_p99_us", "us", Better::kLess, Axis::kLogarithmic,
     "99th percentile of how long bursts last"},
    {"victim_share", "share", Better::kLess, Axis::kShare,
     "packets in bursts that are of flows which only waited"},
    {"rule_insert_us", "us", Better::kLess, Axis::kLogarithmic, "time to insert a rule"},
    {"rule_delete_us", "us", Better::kLess, Axis::kLogarithmic, "time to delete a rule"},
    {"flow_start_us_*", "us", Better::kLess, Axis::kLogarithmic,
     "from a new flow's first packet until the RNIC forwards it"},
    {"layout_share", "share", Better::kNeither, Axis::kShare,
     "RNICs of a fleet that took the layout; others keep what they have"},
    {"bandwidth_gbps.*", "Gbit/s", Better::kMore, Axis::kLinear,
     "goodput of an RNIC of one model, in a fleet of several"},
    {"latency_us_mean.*", "us", Better::kLess, Axis::kLogarithmic,
     "mean latency between RNICs of one model, in a fleet of several"},
    {"cpu_ns_per_message", "ns", Better::kLess, Axis::kLogarithmic,
     "processor time for each message"},
    {"cpu_share", "share", Better::kLess, Axis::kShare, "processor time over wall time"},
    {"packet_cost_ns", "ns", Better::kLess, Axis::kLogarithmic, "processor time for each packet"},
    {"packet_cost_cycles", "cycles", Better::kLess, Axis::kLogarithmic,
     "processor cycles for each packet"},
    {"subtable_lookups_per_packet", "lookups", Better::kLess, Axis::kLinear,
     "subtables that a packet was looked up in"},
    {"exact_match_hit_share", "share", Better::kNeither, Axis::kShare,
     "packets found in the exact-match cache"},
    {"signature_match_hit_share", "share", Better::kNeither, Axis::kShare,
     "packets found in the signature-match cache"},
    {"simple_match_hit_share", "share", Better::kNeither, Axis::kShare,
     "packets found by simple match"},
    {"megaflow_hit_share", "share", Better::kNeither, Axis::kShare,
     "packets found among the megaflows"},
    {"miss_share", "share", Better::kLess, Axis::kShare, "packets that no cached flow matched"},
    {"megaflow_masks", "count", Better::kNeither, Axis::kLinear, "masks of all megaflows"},
    {"megaflows", "count", Better::kNeither, Axis::kLinear, "megaflows"},
    {"revalidator_dump_ms", "ms", Better::kLess, Axis::kLogarithmic,
     "time in which the revalidators dump all flows"},
    {"revalidator_flow_limit", "count", Better::kNeither, Axis::kLinear,
     "flows that the revalidators allow"},
    {"preferences", "count", Better::kNeither, Axis::kLinear,
     "tc filter preferences, one for each mask"},
    {"hop_p50_us.*", "us", Better::kLess, Axis::kLogarithmic,
     "median delay from one point of a packet's way to the next"},
    {"hop_p99_us.*", "us", Better::kLess, Axis::kLogarithmic,
     "99th percentile of the delay from one point of a packet's way to the next"},
    {"hop_loss_share.*", "share", Better::kLess, Axis::kShare,
     "packets lost between one point of their way and the next"},
    {"status_as_expected_share", "share", Better::kMore, Axis::kShare,
     "negative tests that ended in the status that devices are known to give"},
    {"status_by_the_book_share", "share", Better::kMore, Axis::kShare,
     "negative tests that ended in the status of the standard"},
};

}  // namespace

std::string_view to_string(Better better) {
  switch (better) {
    case Better::kMore:
      return "more";
    case Better::kLess:
      return "less";
    case Better::kNeither:
      return "neither";
  }
  return {};
}

std::optional<Better> better_named(std::string_view name) {
  if (name == "more") return Better::kMore;
  if (name == "less") return Better::kLess;
  return std::nullopt;
}

std::span<const MeasureInfo> known_measures() { return kMeasures; }

const MeasureInfo* find_measure(std::string_view name) {
  const auto* const found = std::ranges::find_if(kMeasures, [name](const MeasureInfo& info) {
    const bool family = info.name.ends_with('*');
    return family ? name.starts_with(info.name.substr(0, info.name.size() - 1)) : name == info.name;
  });
  return found == std::end(kMeasures) ? nullptr : found;
}

std::optional<Better> better_direction(std::string_view name) {
  const MeasureInfo* info = find_measure(name);
  return info == nullptr ? std::nullopt : std::optional(info->better);
}

}  // namespace greynic
