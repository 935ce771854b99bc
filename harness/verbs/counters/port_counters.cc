#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "device/verbs_errors.h"
#include "greynic/os/ethtool.h"
#include "greynic/verbs/counters.h"

namespace greynic::verbs {
namespace {

namespace fs = std::filesystem;

struct Neutral {
  std::string_view raw;
  std::string_view name;
};

/// Raw names by driver documentation: Soft-RoCE (rxe_hw_counters.c), mlx5 (counters.c), irdma,
/// bnxt_re.
constexpr Neutral kNeutral[] = {
    {"sent_pkts", "rdma.packets_sent"},
    {"rcvd_pkts", "rdma.packets_received"},
    {"duplicate_request", "rdma.duplicate_requests"},
    {"out_of_seq_request", "rdma.out_of_sequence"},
    {"out_of_sequence", "rdma.out_of_sequence"},
    {"rcvd_rnr_err", "rdma.receiver_not_ready_received"},
    {"send_rnr_err", "rdma.receiver_not_ready_sent"},
    {"rnr_nak_retry_err", "rdma.receiver_not_ready_received"},
    {"rcvd_seq_err", "rdma.sequence_naks_received"},
    {"packet_seq_err", "rdma.sequence_naks_received"},
    {"retry_exceeded_err", "rdma.retries_exceeded"},
    {"req_cqe_error", "rdma.request_errors"},
    {"retry_rnr_exceeded_err", "rdma.receiver_not_ready_exceeded"},
    {"completer_retry_err", "rdma.retransmissions"},
    {"local_ack_timeout_err", "rdma.ack_timeouts"},
    {"np_cnp_sent", "rdma.congestion_notifications_sent"},
    {"rp_cnp_handled", "rdma.congestion_notifications_handled"},
    {"rx_icrc_encapsulated", "rdma.checksum_errors"},
    {"rdma_sends", "rdma.sends"},
    {"rdma_recvs", "rdma.receives"},
};

bool read_number(const fs::path& path, double& value) {
  const std::string line = read_line(path);
  char* end = nullptr;
  value = std::strtod(line.c_str(), &end);
  return end != line.c_str();
}

fs::path folder_of(std::string_view device, int port) {
  return fs::path("/sys/class/infiniband") / device / "ports" / std::to_string(port);
}

void read_folder(const fs::path& folder, std::string_view prefix,
                 std::map<std::string, double>& into) {
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const std::string raw = file.path().filename();
    double value = 0.0;
    if (raw == "lifespan" || !read_number(file.path(), value)) continue;
    // port_xmit_data and port_rcv_data count words of 4 bytes (InfiniBand spec, 16.1.3.5).
    if (prefix == "port" && raw.ends_with("_data")) value *= 4.0;
    into[fmt::format("{}.{}", prefix, raw)] = value;
    if (const auto name = neutral_name(raw); prefix == "hw" && !name.empty()) {
      into[std::string(name)] = value;
    }
  }
}

}  // namespace

std::string_view neutral_name(std::string_view raw) {
  for (const Neutral& row : kNeutral) {
    if (row.raw == raw) return row.name;
  }
  return {};
}

std::map<std::string, double> read_neutral_counters(std::string_view device, int port) {
  std::map<std::string, double> counters;
  if (const auto all = netlink_counters(device, port); all && !all->empty()) {
    for (const auto& [raw, value] : *all) {
      if (const auto name = neutral_name(raw); !name.empty()) counters.emplace(name, value);
    }
  } else {
    read_folder(folder_of(device, port) / "hw_counters", "hw", counters);
    std::erase_if(counters, [](const auto& row) { return row.first.starts_with("hw."); });
  }
  return counters;
}

std::map<std::string, double> read_counters(std::string_view device, int port) {
  std::map<std::string, double> counters;
  const fs::path base = folder_of(device, port);
  read_folder(base / "counters", "port", counters);
  read_folder(base / "hw_counters", "hw", counters);
  // Newer kernels publish some counters over netlink only.
  if (const auto more = netlink_counters(device, port)) {
    for (const auto& [raw, value] : *more) {
      counters.emplace("hw." + raw, value);
      if (const auto name = neutral_name(raw); !name.empty()) counters.emplace(name, value);
    }
  }
  // Counters bound to QPs (`rdma statistic qp set`), where the driver has such: their sum.
  if (const auto sets = netlink_qp_counters(device)) {
    for (const QpCounters& set : *sets) {
      for (const auto& [raw, value] : set.values) counters["qp." + raw] += value;
    }
  }
  const std::string interface = read_line(folder_of(device, port) / "gid_attrs/ndevs/0");
  if (!interface.empty()) {
    read_folder(fs::path("/sys/class/net") / interface / "statistics", "net", counters);
    os::EthtoolStats driver(interface);
    const auto values = driver.read();
    for (std::size_t i = 0; i < values.size(); ++i) {
      counters["net." + driver.names()[i]] = static_cast<double>(values[i]);
    }
  }
  return counters;
}

}  // namespace greynic::verbs
