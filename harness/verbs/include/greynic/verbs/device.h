#pragma once

/// RDMA devices of this machine: opening one, what it is limited to, its port and its GIDs.
///
/// Everything that lives on a device keeps it open, so the order in which wrappers are destroyed
/// does not matter. A device can vanish while it is open (`rdma link delete`, a firmware reset):
/// calls then fail with EIO, and Device::gone() tells that apart from other failures.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"

struct ibv_context;

namespace greynic::verbs {

/// Names of the RDMA devices that user space can open, sorted; empty where there are none.
[[nodiscard]] std::vector<std::string> device_names();

/// What the device says it can do at most (ibv_query_device); counts unless named otherwise.
struct DeviceLimits {
  std::uint32_t qp_count = 0;
  std::uint32_t queue_depth = 0;  ///< slots of one send or receive queue
  std::uint32_t cq_count = 0;
  std::uint32_t cq_depth = 0;
  std::uint32_t mr_count = 0;
  std::uint64_t mr_bytes = 0;
  std::uint32_t sge_count = 0;
  std::uint32_t srq_count = 0;
  std::uint32_t srq_depth = 0;
  std::uint32_t mw_count = 0;
  std::uint32_t reads_as_responder = 0;  ///< outstanding READs and atomics of one QP
  std::uint32_t reads_as_requester = 0;
  std::uint64_t message_bytes = 0;  ///< of the port
  bool atomics = false;
  bool memory_windows_2b = false;  ///< type 2B memory windows: SEND with invalidate has a use
  bool xrc = false;
  bool thread_domains = false;  ///< a thread's QPs may have a doorbell register of their own
  std::string firmware;
};

struct PortState {
  bool active = false;
  bool ethernet = false;
  std::uint16_t lid = 0;
  std::uint32_t active_mtu_bytes = 0;
  double link_gbps = 0.0;  ///< width times lane speed; 0 when the device names neither
};

using Gid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2 };

struct GidEntry {
  int index = 0;
  Gid gid{};
  GidType type = GidType::kRoceV2;
  std::string interface;  ///< network interface it belongs to; empty if none

  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] std::string address() const;  ///< "10.0.0.1" or "fe80::1"
};

/// Picks one entry by rule: "auto" (RoCE v2 over IPv4, then over global IPv6, then link-local, then
/// RoCE v1 or InfiniBand), "ipv4", "ipv6", an index, or an address.
/// Errors: kBadInput (no such rule), kMissing (none fits; lists what there is).
[[nodiscard]] Result<GidEntry> choose_gid(const std::vector<GidEntry>& entries,
                                          std::string_view rule);

class Device {
 public:
  /// Errors: kMissing with the devices that there are, and the remedy where there are none.
  [[nodiscard]] static Result<Device> open(std::string_view name, int port = 1);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const DeviceLimits& limits() const { return limits_; }
  [[nodiscard]] Result<PortState> port_state() const;
  [[nodiscard]] Result<std::vector<GidEntry>> gids() const;
  /// True when the device was removed after it was opened.
  [[nodiscard]] bool gone() const;
  /// Kernel driver ("rdma_rxe", "mlx5_core"); "unknown" when the kernel does not say.
  [[nodiscard]] std::string driver() const;

  [[nodiscard]] ibv_context* handle() const { return context_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_context>& share() const { return context_; }

 private:
  std::string name_;
  int port_ = 1;
  std::shared_ptr<ibv_context> context_;
  DeviceLimits limits_;
  std::string door_;      ///< "uverbs0", through which it was opened
  std::string identity_;  ///< sysfs inode of the door: a re-added device has another
};

}  // namespace greynic::verbs
