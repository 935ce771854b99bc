#include "pipeline/parameters.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "greynic/model/published.h"

namespace greynic::model::pipeline {
namespace {

struct Spread {
  double mean;
  double deviation;
};

/// Mean and deviation of what the six published RNICs say about a logarithm. Six RNICs of three
/// makers are few, and the rows are smooth fits, so the deviation is doubled and never below 0.2.
template <typename F>
Spread population(F log_of_row) {
  const auto rows = published_rows();
  double sum = 0.0;
  for (const auto& row : rows) sum += log_of_row(row);
  const double mean = sum / static_cast<double>(rows.size());
  double squares = 0.0;
  for (const auto& row : rows) squares += std::pow(log_of_row(row) - mean, 2.0);
  const double deviation = std::sqrt(squares / static_cast<double>(rows.size() - 1));
  return {mean, std::max(0.2, 2.0 * deviation)};
}

constexpr double kTypicalStageBaseUs = 0.4;
constexpr double kGridEdge = 20.0;  // the published surfaces were measured for 0 to 20 masks

// Half a round trip of a ping-pong holds half of a pass in each direction, so one pass costs twice
// the published slope.
double pass_us(double half_round_trip_slope) { return 2.0 * half_round_trip_slope; }

// At the edge of the published grid the walk is the bottleneck, so packets at once = rate x time.
double log_packets_per_line(const PublishedRow& row, double bandwidth_gbps, double walk_us) {
  const double packets_per_us = bandwidth_gbps * 1e3 / 8.0 / 1024.0;
  return std::log(packets_per_us * (kTypicalStageBaseUs + walk_us) / row.line_rate_gbps);
}

using Table = std::array<ParameterInfo, kParameterCount>;

Prior about(double value, double deviation) { return {std::log(value), deviation, std::nullopt}; }

Prior times(Parameter other, double factor, double deviation) {
  return {std::log(factor), deviation, other};
}

Prior from(const Spread& spread) { return {spread.mean, spread.deviation, std::nullopt}; }

Prior from_times(const Spread& spread, Parameter other) {
  return {spread.mean, spread.deviation, other};
}

/// What limits rates: the wire, the bus, threads, messages and packets.
void fill_rates(Table& t) {
  t[kLineGbps] = {"line_gbps",    "Gbit/s", "rate of the wire, headers and gaps included",
                  true,           0.1,      3200,
                  about(200, 1.5)};
  t[kPcieGbps] = {"pcie_gbps", "Gbit/s", "rate of payload over the host bus", true,
                  0.1,         20000,    times(kLineGbps, 1.3, 0.4)};
  t[kPostNs] = {"post_ns",      "ns", "posting and polling of one message by one thread",
                true,           1,    1e7,
                about(150, 1.0)};
  t[kDoorbellNs] = {"doorbell_ns",  "ns", "one post at a doorbell register that threads share",
                    true,           1,    1e6,
                    about(300, 0.8)};
  t[kDoorbellWaitNs] = {
      "doorbell_wait_ns", "ns", "added by each thread that shares the register", true, 0.1, 1e6,
      about(60, 0.8)};
  t[kSendGapNs] = {"send_gap_ns", "ns",         "receive work request of one SEND", true, 0.05,
                   1e5,           about(3, 1.2)};
  t[kMessageNs] = {"message_ns", "ns",         "one message in the whole NIC", true, 0.5,
                   1e6,          about(8, 1.0)};
  t[kQpPacketNs] = {"qp_packet_ns", "ns", "one packet in the unit that serves its QP", true, 1, 1e6,
                    about(80, 0.7)};
  t[kQpMaskNs] = {"qp_mask_ns", "ns",  "added to it by one mask of an encapsulation",
                  true,         0.001, 1e4,
                  about(1, 1.2)};
}

/// What masks cost, and latency without them.
void fill_masks(Table& t) {
  const Spread encap = population(
      [](const PublishedRow& row) { return std::log(1e3 * pass_us(row.coefficients.a)); });
  const Spread decap = population(
      [](const PublishedRow& row) { return std::log(1e3 * pass_us(row.coefficients.b)); });
  const Spread encap_packets = population([](const PublishedRow& row) {
    return log_packets_per_line(row, row.coefficients.bandwidth_gbps(kGridEdge, 0.0),
                                kGridEdge * pass_us(row.coefficients.a));
  });
  const Spread decap_packets = population([](const PublishedRow& row) {
    return log_packets_per_line(row, row.coefficients.bandwidth_gbps(0.0, kGridEdge),
                                kGridEdge * pass_us(row.coefficients.b));
  });
  const Spread base =
      population([](const PublishedRow& row) { return std::log(row.coefficients.c); });

  // Runs of one setting with SEND and with WRITE differ by about a tenth in the published logs.
  const Prior same_as_others{0.0, 0.1, std::nullopt};
  t[kEncapPackets] = {"encap_packets",
                      "packets",
                      "walked at once by the encapsulation stage",
                      true,
                      0.1,
                      1e5,
                      from_times(encap_packets, kLineGbps)};
  t[kDecapPackets] = {"decap_packets",
                      "packets",
                      "walked at once by the decapsulation stage",
                      true,
                      0.1,
                      1e5,
                      from_times(decap_packets, kLineGbps)};
  t[kQpWindow] = {"qp_window_packets",
                  "packets",
                  "of one QP between both stages at once",
                  true,
                  0.1,
                  1e5,
                  times(kDecapPackets, 1.0, 0.4)};
  t[kStageBaseUs] = {"stage_base_us", "us", "a packet in a stage without masks", true,
                     0.001,           100,  about(kTypicalStageBaseUs, 0.7)};
  t[kEncapNs] = {"encap_ns", "ns",       "one mask of an encapsulation, one packet", true, 0.01,
                 1e5,        from(encap)};
  t[kDecapNs] = {"decap_ns", "ns",       "one mask of a decapsulation, one packet", true, 0.01,
                 1e5,        from(decap)};
  constexpr std::array<std::string_view, 4> kEncapNames = {"encap_send_log", "encap_write_log",
                                                           "encap_read_log", "encap_atomic_log"};
  constexpr std::array<std::string_view, 4> kDecapNames = {"decap_send_log", "decap_write_log",
                                                           "decap_read_log", "decap_atomic_log"};
  constexpr std::array<std::string_view, 4> kBaseNames = {"base_send_us", "base_write_us",
                                                          "base_read_us", "base_atomic_us"};
  for (int o = 0; o < 4; ++o) {
    t[kEncapOfOperation + o] = {kEncapNames[o], "1", "log deviation of encap_ns", false, -2, 2,
                                same_as_others};
    t[kDecapOfOperation + o] = {kDecapNames[o], "1", "log deviation of decap_ns", false, -2, 2,
                                same_as_others};
    t[kBaseUs + o] = {kBaseNames[o], "us",      "latency of an empty message", true, 0.01,
                      1e4,           from(base)};
  }
}

/// Fetching of payload, loops and queues.
void fill_waits(Table& t) {
  t[kInlineBytes] = {"inline_default_bytes",
                     "bytes",
                     "rides inside the request unless told otherwise",
                     true,
                     1,
                     65536,
                     about(64, 1.5)};
  t[kFetchUs] = {"fetch_us", "us",           "payload fetched from host memory", true, 0.001,
                 100,        about(0.5, 0.8)};
  t[kByteNs] = {"byte_ns", "ns/byte",      "latency of each byte of the first burst", true, 1e-4,
                100,       about(0.1, 0.8)};
  t[kBurstGapUs] = {"burst_gap_us", "us", "second burst waits for the first", true, 0.001, 100,
                    about(0.3, 0.8)};
  // Not fitted: the published logs show a whole walk, the published surfaces none.
  t[kBurstWalk] = {"burst_walk",  "1",   "of a walk the second burst waits: all or next to nothing",
                   true,          0.001, 1,
                   about(1, 0.05)};
  // The published surfaces, taken as packets in a closed loop, give 16 packets at 50 Gbit/s to 135
  // at 400 Gbit/s, and loops of 2.6 to 4.3 us (reference/curves.md item 6, derived).
  t[kLoopPackets] = {"loop_packets",
                     "packets",
                     "between sending and word of arrival",
                     true,
                     0.1,
                     kOpenLoopPackets,
                     times(kLineGbps, 0.4, 0.5)};
  t[kLoopBaseUs] = {"loop_base_us", "us", "the loop without masks", true,
                    0.01,           1000, about(3.4, 0.4)};
  t[kSharpness] = {"sharpness",    "1", "abruptness between bottlenecks", true, 2, 64,
                   about(12, 0.35)};
  // A request and its completion: nearly twice half a round trip.
  t[kQueueBaseUs] = {"queue_base_us",
                     "us",
                     "a work request holds its slot without masks",
                     true,
                     0.01,
                     1e5,
                     times(static_cast<Parameter>(kBaseUs + 1), 2.1, 0.3)};
}

/// What the chip keeps, and what it costs to fetch the rest.
void fill_caches(Table& t) {
  t[kQpContexts] = {"qp_contexts", "QPs",           "contexts kept on the chip", true, 1,
                    1e7,           about(1500, 1.2)};
  t[kQpMissNs] = {"qp_miss_ns", "ns", "fetching one context", true, 0.1, 1e5, about(100, 1.0)};
  t[kQpStall] = {
      "qp_stall",      "1", "share of the pace lost while contexts are missing", true, 1e-4, 10,
      about(0.02, 1.5)};
  t[kQpWaitUs] = {"qp_wait_us", "us",          "latency of a missing context", true, 1e-4,
                  100,          about(0.05, 2)};
  t[kPageEntries] = {"page_entries", "entries",        "translations kept on the chip", true, 1,
                     1e10,           about(65536, 1.2)};
  t[kPageMissNs] = {"page_miss_ns", "ns", "fetching one translation", true, 0.1, 1e5,
                    about(10, 1.2)};
  t[kPageWaitUs] = {"page_wait_us", "us", "latency of a missing translation", true, 1e-4, 100,
                    about(0.3, 1.2)};
  t[kWqeEntries] = {"wqe_entries", "entries",       "work requests kept on the chip", true, 1,
                    1e8,           about(2000, 1.0)};
  t[kWqeMissNs] = {"wqe_miss_ns", "ns",          "fetching one work request again", true, 0.1,
                   1e5,           about(10, 1.2)};
  t[kVxlanContexts] = {
      "vxlan_contexts", "contexts", "VXLAN contexts kept on the chip", true, 1, 1e8,
      about(2000, 1.2)};
  t[kVxlanMissNs] = {"vxlan_miss_ns", "ns", "fetching one VXLAN context", true, 0.1, 1e5,
                     about(50, 1.2)};
  t[kFlowSetupNs] = {"flow_setup_ns", "ns", "NIC kept busy by setting up one flow", true, 0.1, 1e8,
                     about(500, 1.5)};
}

Table make_table() {
  Table t{};
  fill_rates(t);
  fill_masks(t);
  fill_waits(t);
  fill_caches(t);
  return t;
}

}  // namespace

const std::array<ParameterInfo, kParameterCount>& parameters() {
  static const auto table = make_table();
  return table;
}

std::optional<Parameter> parameter_named(std::string_view name) {
  for (int j = 0; j < kParameterCount; ++j) {
    if (parameters()[j].name == name) return static_cast<Parameter>(j);
  }
  return std::nullopt;
}

double shown(Parameter parameter, double fitted_value) {
  return parameters()[parameter].logarithmic ? std::exp(fitted_value) : fitted_value;
}

double fitted(Parameter parameter, double shown_value) {
  return parameters()[parameter].logarithmic ? std::log(shown_value) : shown_value;
}

Values typical() {
  Values values{};
  for (int j = 0; j < kParameterCount; ++j) {
    const Prior& prior = parameters()[j].prior;
    // References come earlier in the table than what refers to them.
    values[j] = prior.mean + (prior.relative_to ? values[*prior.relative_to] : 0.0);
  }
  return values;
}

}  // namespace greynic::model::pipeline
