#pragma once

/// An Open vSwitch that belongs to greynic alone: its own folder, database, sockets and network
/// namespace, gone when the object goes. Packets come from a DPDK pcap port that replays a file
/// without end and vanish in null ports, so that only the switch's own work is on the clock.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/packet_bytes.h"
#include "greynic/core/result.h"
#include "greynic/os/own_folder.h"
#include "greynic/os/program.h"
#include "ovs/json_rpc.h"
#include "ovs/ovsdb.h"

namespace greynic::flows {

struct PrivateSwitchOptions {
  std::string bridge = "br0";
  int cpu = -1;  ///< where packets are processed; -1: the last one we may use
};

class PrivateSwitch {
 public:
  static constexpr const char* kSource =
      "source";  ///< name and number of the port packets come from
  static constexpr std::uint32_t kSourceNumber = 1;
  static constexpr TunnelEnd kTunnelEnd = {0x026772657921, 0xc6120001};  ///< 198.18.0.1
  static constexpr std::size_t kMostTunnelEnds = 64;
  static constexpr std::size_t kMostSinks = 4;  ///< each takes some 40 MiB of DPDK's 512

  /// Why it cannot be started here and what to do about it; empty when it can.
  struct Obstacle {
    std::string why_not;
    std::string remedy;
  };
  [[nodiscard]] static Obstacle obstacle();

  [[nodiscard]] static Result<std::unique_ptr<PrivateSwitch>> start(
      const PrivateSwitchOptions& options);
  ~PrivateSwitch();
  PrivateSwitch(const PrivateSwitch&) = delete;
  PrivateSwitch& operator=(const PrivateSwitch&) = delete;

  /// Switches the exact-match cache and the signature-match cache.
  [[nodiscard]] Result<void> set_caches(bool exact_match, bool signature_match);
  /// An exact-match cache that is on takes one new packet in a hundred: it would be full only after
  /// seconds, the later the dearer a packet is. While it learns quickly it takes each.
  [[nodiscard]] Result<void> learn_quickly(bool quickly);
  /// Makes sure there is a port of this name that swallows what it is given. DPDK's memory has room
  /// for kMostSinks of them; what comes after shares one, which costs a packet the same.
  [[nodiscard]] Result<void> ensure_sink(const std::string& name);
  /// OpenFlow numbers of all ports, those that share one included.
  [[nodiscard]] Result<std::map<std::string, std::uint32_t>> ports() const;
  /// Starts replaying a pcap file, from the beginning and without end. `wrapped`: what is addressed
  /// to kTunnelEnd is unwrapped first, and comes to the bridge with the tunnel's fields.
  [[nodiscard]] Result<void> start_traffic(const std::string& pcap_path, bool wrapped);
  /// Makes sure that VXLAN tunnels end at these addresses.
  [[nodiscard]] Result<void> end_tunnels(const std::set<std::uint32_t>& addresses);
  [[nodiscard]] Result<void> stop_traffic();
  /// Forgets the megaflows, so that what is there later came from the rules that are there now.
  [[nodiscard]] Result<void> forget_megaflows();

  /// The answer of the control socket to an ovs-appctl command, e.g. "dpif-netdev/pmd-stats-show".
  [[nodiscard]] Result<std::string> ask(const std::string& command,
                                        const std::vector<std::string>& arguments = {});
  /// What the packet thread has had of its CPU, and how long it was ready and waited for it.
  struct ThreadTime {
    std::uint64_t on_cpu_ns = 0;
    std::uint64_t waiting_ns = 0;
  };
  [[nodiscard]] Result<ThreadTime> packet_thread_time() const;

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  [[nodiscard]] const std::string& bridge() const { return options_.bridge; }
  [[nodiscard]] std::string database_socket() const { return folder() + "/db.sock"; }
  [[nodiscard]] Ovsdb& database() { return *database_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] int cpu() const { return options_.cpu; }

 private:
  PrivateSwitch(PrivateSwitchOptions options, os::OwnFolder folder, os::NetworkNamespace place);
  [[nodiscard]] Result<void> launch();
  /// The bridge at which wrapped packets arrive; there from the first end of a tunnel on.
  [[nodiscard]] std::string underlay() const;
  [[nodiscard]] Result<void> make_underlay();
  /// Gives it the addresses, and waits until the switch knows them for its own.
  [[nodiscard]] Result<void> add_addresses(const std::set<std::uint32_t>& addresses);
  /// Between underlay and bridge, for what is not wrapped.
  [[nodiscard]] Result<void> connect_underlay();
  [[nodiscard]] Result<void> disconnect_underlay();
  /// The last lines that ovs-vswitchd logged: why it died.
  [[nodiscard]] std::string last_words() const;

  PrivateSwitchOptions options_;
  os::OwnFolder folder_;
  std::string version_;
  os::NetworkNamespace place_;
  os::Daemon database_server_;
  os::Daemon switch_;
  std::unique_ptr<Ovsdb> database_;
  std::unique_ptr<JsonRpc> control_;
  enum class Source : std::uint8_t { kNone, kBridge, kUnderlay };
  std::string_view exact_match_learns_ = "100";        ///< as the database has it
  Source source_ = Source::kNone;                      ///< where packets arrive
  std::set<std::uint32_t> tunnel_ends_;                ///< addresses of the underlay
  std::map<std::string, int> sinks_;                   ///< index of the null device behind each
  std::map<std::string, std::uint32_t> shared_sinks_;  ///< number of the sink that each shares
};

}  // namespace greynic::flows
