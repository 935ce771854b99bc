#pragma once

/// A veth pair in a network namespace of its own: what is sent into one end is classified on the
/// ingress of the other, on the sender's own CPU time, which is what a packet costs.

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/packet_bytes.h"
#include "greynic/core/observation.h"
#include "greynic/os/netlink.h"
#include "greynic/os/program.h"

namespace greynic::flows {

struct WireTimes {
  Measure cost_ns;  ///< median over windows of the sender's CPU time for one packet
  double packets = 0;
  double wall_seconds = 0;
  SteadyState steady;
};

class VethWire {
 public:
  static constexpr const char* kPort = "port";      ///< where rules go
  static constexpr const char* kSource = "source";  ///< where packets enter

  /// kMissing with the reason when the namespace, the pair or the raw socket cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<VethWire>> create();
  VethWire(const VethWire&) = delete;
  VethWire& operator=(const VethWire&) = delete;
  ~VethWire();

  [[nodiscard]] const os::NetworkNamespace& place() const { return place_; }
  /// An interface that swallows packets, made when it is not there.
  [[nodiscard]] Result<void> ensure_sink(const std::string& name);
  /// Sends the frames over and over for `duration`, after a tenth of it to warm up, and times it.
  [[nodiscard]] Result<WireTimes> time(const std::vector<Frame>& frames,
                                       std::chrono::nanoseconds duration);

 private:
  VethWire(os::NetworkNamespace place, os::NetlinkSocket links, int sender);
  os::NetworkNamespace place_;
  os::NetlinkSocket links_;
  int sender_;
  std::set<std::string> sinks_;
};

}  // namespace greynic::flows
