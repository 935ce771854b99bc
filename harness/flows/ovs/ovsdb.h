#pragma once

/// The configuration database of a switch, over OVSDB's JSON-RPC (RFC 7047): settings, bridges and
/// ports. Every change waits until ovs-vswitchd says that it acted on it.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ovs/json_rpc.h"

namespace greynic::flows {

struct PortSettings {
  std::string name;
  std::string type;                            ///< "internal", "dpdk"
  std::map<std::string, std::string> options;  ///< of the interface
  std::optional<int> openflow_number;          ///< asked for; empty: the switch chooses
};

class Ovsdb {
 public:
  [[nodiscard]] static Result<Ovsdb> connect(const std::string& socket_path);

  /// Makes the one row of the table Open_vSwitch with these settings, before ovs-vswitchd starts.
  [[nodiscard]] Result<void> initialise(const std::map<std::string, std::string>& settings);
  /// Changes entries of other_config of the whole switch.
  [[nodiscard]] Result<void> set(const std::map<std::string, std::string>& settings);
  /// A bridge on the userspace datapath that forwards nothing until rules say so.
  [[nodiscard]] Result<void> add_bridge(const std::string& name,
                                        const std::map<std::string, std::string>& settings = {});
  /// kRefused with the switch's own words when the port does not come up; it is then removed.
  [[nodiscard]] Result<void> add_port(const std::string& bridge, const PortSettings& settings);
  /// Several at once, each with its bridge, for ports that exist by one another.
  [[nodiscard]] Result<void> add_ports(
      const std::vector<std::pair<std::string, PortSettings>>& ports);
  [[nodiscard]] Result<void> remove_port(const std::string& bridge, const std::string& port);
  /// Number of each port of a bridge that is up.
  [[nodiscard]] Result<std::map<std::string, std::uint32_t>> ports(const std::string& bridge);

 private:
  explicit Ovsdb(JsonRpc rpc) : rpc_(std::move(rpc)) {}
  /// Results of the operations, in order; kRefused when one of them failed.
  [[nodiscard]] Result<nlohmann::json> transact(const std::vector<nlohmann::json>& operations);
  /// The same, then waits until the switch has acted on it.
  [[nodiscard]] Result<void> configure(std::vector<nlohmann::json> operations);

  JsonRpc rpc_;
};

}  // namespace greynic::flows
