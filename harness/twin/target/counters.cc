#include "target/counters.h"

namespace greynic::twin {
namespace {

void add(std::vector<std::pair<std::string, double>>& out, const std::string& prefix,
         const NicCounters& own, std::uint64_t discards, double pipes,
         const CounterGroups& groups) {
  const auto put = [&](const char* name, double value) { out.emplace_back(prefix + name, value); };
  const auto count = [](std::uint64_t value) { return static_cast<double>(value); };
  // ethtool -S
  put("tx_vport_rdma_unicast_packets", count(own.tx_packets));
  put("tx_vport_rdma_unicast_bytes", count(own.tx_bytes));
  put("rx_vport_rdma_unicast_packets", count(own.rx_packets));
  put("rx_vport_rdma_unicast_bytes", count(own.rx_bytes));
  put("tx_prio3_pause_duration", own.tx_pause * 1e-3);  // us
  put("rx_prio3_pause_duration", own.rx_pause * 1e-3);  // us
  put("outbound_pci_stalled_rd", own.pcie_back_pressure * 1e-3);
  // rdma statistic show
  put("rx_write_requests", count(own.write_requests));
  put("rx_read_requests", count(own.read_requests));
  put("rx_atomic_requests", count(own.atomic_requests));
  put("out_of_buffer", count(own.out_of_buffer));
  put("rnr_nak_sent", count(own.rnr_naks));
  put("packet_seq_err", count(own.retransmitted_packets));
  // Diagnostic counters, as Collie and Neo-Host name them.
  put("icm_context_cache_miss", count(own.context_misses));
  put("mtt_cache_miss", count(own.translation_misses));
  put("steering_cache_miss", count(own.steering_misses));
  put("send_wqe_cache_miss", count(own.wqe_cache_misses));
  put("pcie_internal_back_pressure", own.pcie_back_pressure);  // ns
  put("pcie_read_requests", count(own.pcie_read_tlps));
  put("doorbells", count(own.doorbells));
  put("blueflame_doorbells", count(own.blueflame_doorbells));
  put("completions", count(own.completions));
  put("tx_steering_pipe_hops", own.tx_hops / pipes);  // of each pipe
  put("rx_steering_pipe_hops", own.rx_hops / pipes);
  if (groups.discards) put("switch_discards", count(own.port_discards));
  if (groups.congestion) {
    put("np_ecn_marked_roce_packets", count(own.ecn_marked));
    put("np_cnp_sent", count(own.cnps_sent));
    put("rp_cnp_handled", count(own.cnps_handled));
  }
  if (groups.errors) {
    const std::uint64_t failed = own.retries_exceeded + own.rnr_retries_exceeded;
    put("rnr_nak_retry_err", count(own.rnr_naks_heard));
    put("req_rnr_retries_exceeded", count(own.rnr_retries_exceeded));
    put("req_transport_retries_exceeded", count(own.retries_exceeded));
    put("req_cqe_error", count(failed + own.flushed));
    put("req_cqe_flush_error", count(own.flushed));
  }
  if (groups.errors || groups.recovery) put("local_ack_timeout_err", count(own.timeouts));
  if (!groups.recovery) return;
  put("rx_icrc_encapsulated", count(own.dropped_packets - discards));
  put("out_of_sequence", count(own.out_of_sequence));
  put("retransmitted_packets", count(own.retransmitted_packets));
  put("rx_sequence_naks", count(own.sequence_naks));
}

}  // namespace

std::vector<std::pair<std::string, double>> name_counters(std::span<const NicCounters> rnics,
                                                          double pipe_count,
                                                          const CounterGroups& groups) {
  std::vector<std::pair<std::string, double>> out;
  out.reserve(64);
  // What the switch dropped never reached the server, though its books have it.
  std::uint64_t discards = 0;
  for (const NicCounters& rnic : rnics) discards += rnic.port_discards;
  for (std::size_t i = 0; i < rnics.size(); ++i) {
    const std::string prefix = i == 0   ? ""
                               : i == 1 ? "server."
                                        : "client" + std::to_string(i) + ".";
    add(out, prefix, rnics[i], i == 1 ? discards : 0, pipe_count, groups);
  }
  return out;
}

}  // namespace greynic::twin
