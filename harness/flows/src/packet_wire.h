#pragma once

/// A veth pair in a network namespace of its own: what is sent into one end is classified on the
/// ingress of the other, on the sender's own CPU time, which is what a packet costs.

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "child_process.h"
#include "greynic/core/observation.h"
#include "netlink.h"
#include "packet_bytes.h"

namespace greynic::flows {

struct WireTimes {
  Measure cost_ns;  ///< median over windows of the sender's CPU time for one packet
  double packets = 0;
  double wall_seconds = 0;
  SteadyState steady;
};

class PacketWire {
 public:
  static constexpr const char* kPort = "port";      ///< where rules go
  static constexpr const char* kSource = "source";  ///< where packets enter

  /// kMissing with the reason when the namespace, the pair or the raw socket cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<PacketWire>> create();
  PacketWire(const PacketWire&) = delete;
  PacketWire& operator=(const PacketWire&) = delete;
  ~PacketWire();

  [[nodiscard]] const NetworkNamespace& place() const { return place_; }
  /// An interface that swallows packets, made when it is not there.
  [[nodiscard]] Result<void> ensure_sink(const std::string& name);
  /// Sends the frames over and over for `duration`, after a tenth of it to warm up, and times it.
  [[nodiscard]] Result<WireTimes> time(const std::vector<Frame>& frames,
                                       std::chrono::nanoseconds duration);

 private:
  PacketWire(NetworkNamespace place, NetlinkSocket links, int sender);
  NetworkNamespace place_;
  NetlinkSocket links_;
  int sender_;
  std::set<std::string> sinks_;
};

}  // namespace greynic::flows
