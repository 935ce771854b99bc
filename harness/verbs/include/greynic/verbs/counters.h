#pragma once

/// Counters of an RDMA port and of the network interface under it, as the kernel publishes them.
///
/// Names are neutral where several vendors count the same thing ("rdma.packets_sent") and the raw
/// name stays readable: every counter also appears as "hw.<raw>" (hw_counters and rdma netlink),
/// "qp.<raw>" (counters bound to QPs by `rdma statistic qp`, summed over the device),
/// "port.<raw>" (InfiniBand port counters) or "net.<raw>" (ethtool, interface statistics). What a
/// device does not count is absent, never 0.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::verbs {

/// All that can be read now. Byte counters of InfiniBand ports count words of 4: made bytes here.
[[nodiscard]] std::map<std::string, double> read_counters(std::string_view device, int port);

/// Only those with neutral names, cheap enough to read while traffic runs: one rdma netlink message
/// where the kernel answers it, instead of a file for each counter.
[[nodiscard]] std::map<std::string, double> read_neutral_counters(std::string_view device,
                                                                  int port);

/// The vendor-neutral name of a raw hw_counter; empty when there is none.
[[nodiscard]] std::string_view neutral_name(std::string_view raw);

/// The hw_counters of a port over rdma netlink (`rdma statistic show link`); the optional ones are
/// those that a driver counts only when they are switched on.
/// Errors: kMissing when the kernel has no rdma netlink or no such device.
[[nodiscard]] Result<std::map<std::string, double>> netlink_counters(std::string_view device,
                                                                     int port);

/// A counter that the driver counts only when it is switched on (`rdma statistic mode`).
struct OptionalCounter {
  std::string name;
  std::uint32_t index = 0;  ///< by which it is switched
  bool on = false;
};
/// Those of a port; empty where the driver has none. kMissing as above.
[[nodiscard]] Result<std::vector<OptionalCounter>> optional_counters(std::string_view device,
                                                                     int port);

/// Switches all optional counters of a port on while it lives, then restores what was on before.
/// Needs CAP_NET_ADMIN where the driver has any: kMissing says so.
class OptionalCountersOn {
 public:
  [[nodiscard]] static Result<std::unique_ptr<OptionalCountersOn>> create(std::string device,
                                                                          int port);
  ~OptionalCountersOn();
  OptionalCountersOn(const OptionalCountersOn&) = delete;
  OptionalCountersOn& operator=(const OptionalCountersOn&) = delete;
  /// Their names.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  OptionalCountersOn(std::string device, int port, std::vector<OptionalCounter> before);
  std::string device_;
  int port_;
  std::vector<OptionalCounter> before_;
};

/// One set of counters bound to QPs (`rdma statistic qp show`); empty where the driver has none.
struct QpCounters {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> qp_numbers;
  std::map<std::string, double> values;
};
[[nodiscard]] Result<std::vector<QpCounters>> netlink_qp_counters(std::string_view device);

/// A queue pair as the kernel sees it (`rdma resource show qp`).
struct KernelQp {
  std::uint32_t number = 0;
  std::uint8_t type = 0;   ///< enum ibv_qp_type
  std::uint8_t state = 0;  ///< enum ibv_qp_state
  std::uint32_t send_psn = 0, receive_psn = 0;
  std::uint32_t pid = 0;  ///< of the thread that made it; 0: the kernel
};
/// All of a device. kMissing as above.
[[nodiscard]] Result<std::vector<KernelQp>> netlink_qps(std::string_view device);

}  // namespace greynic::verbs
