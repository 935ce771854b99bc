#include <algorithm>
#include <array>

#include "greynic/causal/critical_path.h"

namespace greynic::causal {
namespace {

struct Named {
  std::string_view name;
  Stage stage;
};

constexpr std::array kFactors = {
    Named{"transport", Stage::kRequest},
    Named{"operation", Stage::kRequest},
    Named{"message_bytes", Stage::kRequest},
    Named{"message_mix", Stage::kRequest},
    Named{"direction", Stage::kRequest},
    Named{"offered_rate", Stage::kRequest},
    Named{"fault", Stage::kRequest},
    Named{"thread_count", Stage::kHost},
    Named{"doorbell_sharing", Stage::kHost},
    Named{"completion_mode", Stage::kHost},
    Named{"qps_per_cq", Stage::kHost},
    Named{"post_batch", Stage::kHost},
    Named{"receive_post_batch", Stage::kHost},
    Named{"signal_every", Stage::kHost},
    Named{"host_platform", Stage::kHost},
    Named{"memory_placement", Stage::kPcie},
    Named{"pcie_relaxed_ordering", Stage::kPcie},
    Named{"pcie_acs_redirect", Stage::kPcie},
    Named{"sge_count", Stage::kPcie},
    Named{"inline_bytes", Stage::kPcie},
    Named{"qp_count", Stage::kCaches},
    Named{"mr_count", Stage::kCaches},
    Named{"mr_bytes", Stage::kCaches},
    Named{"send_queue_depth", Stage::kCaches},
    Named{"receive_queue_depth", Stage::kCaches},
    Named{"shared_receive_queue", Stage::kCaches},
    Named{"client_encap_masks", Stage::kClientEncap},
    Named{"server_decap_masks", Stage::kServerDecap},
    Named{"server_encap_masks", Stage::kServerEncap},
    Named{"client_decap_masks", Stage::kClientDecap},
    Named{"mtu_bytes", Stage::kWire},
    Named{"host_count", Stage::kWire},
    Named{"rules_per_mask", Stage::kVirtualSwitch},
    Named{"flow_count", Stage::kVirtualSwitch},
    Named{"flow_setup_rate", Stage::kVirtualSwitch},
    Named{"vxlan_contexts", Stage::kVirtualSwitch},
    Named{"counter_poll_ms", Stage::kVirtualSwitch},
    Named{"flow_idle_ms", Stage::kVirtualSwitch},
    Named{"vf_unbind_rate", Stage::kVirtualSwitch},
    Named{"container_count", Stage::kVirtualSwitch},
    Named{"exact_match_cache", Stage::kVirtualSwitch},
    Named{"signature_match_cache", Stage::kVirtualSwitch},
};

/// As ethtool, rdma and Neo-Host name them; the far end's have "server." before them.
constexpr std::array kCounters = {
    Named{"out_of_buffer", Stage::kHost},
    Named{"server.out_of_buffer", Stage::kHost},
    Named{"rnr_nak_sent", Stage::kHost},
    Named{"server.rnr_nak_sent", Stage::kHost},
    Named{"rnr_nak_retry_err", Stage::kHost},
    Named{"outbound_pci_stalled_rd", Stage::kPcie},
    Named{"server.outbound_pci_stalled_rd", Stage::kPcie},
    Named{"outbound_pci_stalled_wr", Stage::kPcie},
    Named{"icm_context_cache_miss", Stage::kCaches},
    Named{"server.icm_context_cache_miss", Stage::kCaches},
    Named{"mtt_cache_miss", Stage::kCaches},
    Named{"server.mtt_cache_miss", Stage::kCaches},
    Named{"send_wqe_cache_miss", Stage::kCaches},
    Named{"server.send_wqe_cache_miss", Stage::kCaches},
    Named{"tx_steering_pipe_hops", Stage::kClientEncap},
    Named{"server.rx_steering_pipe_hops", Stage::kServerDecap},
    Named{"server.tx_steering_pipe_hops", Stage::kServerEncap},
    Named{"rx_steering_pipe_hops", Stage::kClientDecap},
    Named{"switch_discards", Stage::kWire},
    Named{"np_ecn_marked_roce_packets", Stage::kWire},
    Named{"packet_seq_err", Stage::kWire},
    Named{"out_of_sequence", Stage::kWire},
    Named{"upcalls", Stage::kVirtualSwitch},
    Named{"flow_deletions", Stage::kVirtualSwitch},
    Named{"driver_timeouts", Stage::kVirtualSwitch},
    Named{"device_resets", Stage::kVirtualSwitch},
    Named{"flows_lost", Stage::kVirtualSwitch},
};

template <typename Names>
std::optional<Stage> find_stage(const Names& names, std::string_view name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Named& one) { return one.name == name; });
  return found == names.end() ? std::nullopt : std::optional(found->stage);
}

}  // namespace

std::string_view name_of(Stage stage) {
  static constexpr std::array<std::string_view, kStages> kNames = {
      "request",      "host",         "PCIe",         "caches", "client encap",
      "server decap", "server encap", "client decap", "wire",   "virtual switch"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::optional<Stage> stage_of_factor(std::string_view factor) {
  return find_stage(kFactors, factor);
}

std::optional<Stage> stage_of_counter(std::string_view counter) {
  return find_stage(kCounters, counter);
}

}  // namespace greynic::causal
