#pragma once

/// The parameters of one RNIC model as the simulator uses them, and where each value comes from.
/// Model files (docs/formats/rnic.md) give every parameter a value, a unit, a grade (A raw data, B
/// quoted, C recalled, D estimate or derived) and a source; profiles override some of them.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"
#include "parameters/parameter_fact.h"

namespace greynic::twin {

/// A parameter that may differ between SEND, WRITE, READ and ATOMIC.
struct PerOperation {
  std::array<double, kOperationCount> value{};
  [[nodiscard]] double operator[](Operation operation) const {
    return value[static_cast<std::size_t>(operation)];
  }
};

/// Names and units are those of the model file; parameters.cc holds the table that ties them.
struct Parameters {
  // Port and PCIe.
  double link_rate_gbps = 0;
  double pcie_generation = 0;
  double pcie_lanes = 0;
  double pcie_max_payload_bytes = 0;
  double pcie_max_read_request_bytes = 0;
  double pcie_read_latency_ns = 0;
  double pcie_read_slot_count = 0;
  double pcie_post_ns = 0;
  // Engines.
  double datasheet_message_rate_mops = 0;
  double peak_read_mops = 0;
  double peak_write_mops = 0;
  double atomic_rate_mops = 0;  ///< 0: the RNIC has no atomics
  double processing_unit_count = 0;
  double qp_packet_rate_cap_mpps = 0;
  double base_half_rtt_us = 0;
  double one_way_ns = 0;
  double ack_ns = 0;
  double send_gap_ns = 0;
  double receive_buffer_packets = 0;
  double receive_resume_packets = 0;
  double transmit_buffer_packets = 0;
  double stored_stage_count = 0;
  // Congestion control, and the switch port that marks and pauses.
  double dcqcn_gain = 0;  ///< 0: the RNIC has no DCQCN
  double dcqcn_alpha_us = 0;
  double dcqcn_increase_us = 0;
  double dcqcn_increase_bytes = 0;
  double dcqcn_recovery_steps = 0;
  double dcqcn_additive_gbps = 0;
  double dcqcn_hyper_gbps = 0;
  double dcqcn_minimum_gbps = 0;
  double dcqcn_cnp_us = 0;
  double port_ecn_low_kbytes = 0;
  double port_ecn_high_kbytes = 0;
  double port_ecn_share = 0;
  double port_pause_kbytes = 0;
  double port_resume_kbytes = 0;
  double port_buffer_kbytes = 0;
  // Host software.
  double post_request_ns = 0;
  double completion_ns = 0;
  double doorbell_register_count = 0;
  double doorbell_dedicated_count = 0;
  double lock_transfer_ns = 0;
  double doorbell_lock_ns = 0;
  double doorbell_contention_ns = 0;
  double qp_lock_ns = 0;
  double qp_contention_ns = 0;
  double contention_limit_threads = 0;
  double cores_per_socket = 0;
  double far_socket_ns = 0;
  double smt_slowdown = 1;
  // Caches.
  double context_entry_count = 0;
  double context_fetch_slot_count = 0;
  double context_fetch_ns = 0;
  double mtt_entry_count = 0;
  double wqe_cache_entry_count = 0;
  PerOperation max_inline_bytes;
  // eSwitch.
  double chip_clock_mhz = 0;
  double steering_pipe_count = 0;
  double base_hops_per_packet = 0;
  PerOperation encap_per_group_ns;
  PerOperation decap_per_group_ns;
  double hops_per_group = 0;
  double encap_unit_cycles_per_group = 0;
  double walk_burst_packets = 0;
  double walk_window_packets = 0;
  double loop_window_packets = 0;
  double loop_base_us = 0;
  double steering_cache_entry_count = 0;
  double large_group_count = 0;   ///< of the driver's auto-grouping; 0: it has none
  double recipe_word_count = 0;   ///< 16-bit words that a lookup recipe looks at; 0: any mask fits
  double recipe_chain_limit = 0;  ///< recipes that may be chained
  double mask_shape_limit = -1;   ///< negative: no limit; 0: no offloaded switch
  double table_limit = -1;        ///< tables of a layout; negative: no limit
  double table_rule_limit = -1;   ///< rules of one table; negative: no limit
  double table_rejoin = 1;        ///< 1: jumps of several tables may lead to one
  double range_field_count = 0;   ///< fields of one matcher that may be compared as ranges
  double encap_context_limit = 0;
  // Rules and virtual switch.
  double rule_insert_us = 0;
  double rule_delete_us = 0;
  double rule_group_us = 0;
  double rule_delete_knee_count = 0;
  double driver_timeout_ms = 0;
  double flow_limit_count = 0;
  double upcall_us = 0;
  double slow_path_mpps = 0;
  double counter_refresh_ms = 0;

  [[nodiscard]] bool has_switch() const { return mask_shape_limit != 0; }
  [[nodiscard]] double cycle_ns() const { return 1e3 / chip_clock_mhz; }
};

/// The published surfaces of one RNIC: BW = u exp(-((Q_l-m)^2 + (Q_r-n)^2) / (2 v^2)) + w in
/// 2^30 bit/s, LAT = a Q_l + b Q_r + c in us.
struct PublishedSurface {
  double u, v, m, n, w, a, b, c;
  [[nodiscard]] double bandwidth(double local, double remote) const;
  [[nodiscard]] double latency(double local, double remote) const;
};

struct RnicModel {
  std::string id;
  std::string name;
  std::string profile;                ///< the one that is in force
  std::vector<std::string> profiles;  ///< all there are
  Parameters parameters;
  std::vector<ParameterFact> facts;  ///< values in force, in the order of the file
  std::optional<PublishedSurface> surface;
  [[nodiscard]] std::size_t free_parameter_count() const;
};

/// Names of the models compiled into the program: "cx6".
[[nodiscard]] std::vector<std::string> embedded_model_names();

/// Loads a compiled-in model by name, or a model file by path. An empty profile means the file's
/// default. kBadInput for an unknown name, profile or parameter, or a file that breaks its schema.
[[nodiscard]] Result<RnicModel> load_model(const std::string& name_or_path,
                                           const std::string& profile);

}  // namespace greynic::twin
