#pragma once

/// The other end of a connection, wherever it is: in this process, or behind `greynic agent`.
///
/// One run is open -> connect -> (traffic) -> finish. Errors: kRefused when the other end's device
/// says no (an outcome of the configuration), kIo when the peer died, hung or speaks another
/// version (its message says which); the next open starts afresh.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "greynic/verbs/traffic.h"

namespace greynic::verbs {

/// Raised with every change of what peers say to each other.
inline constexpr int kPeerProtocol = 6;

struct PeerReport {
  AnswerReport answers;
  std::optional<RequestReport> requests;  ///< bidirectional runs
  std::map<std::string, double> counters_before;
  std::map<std::string, double> counters_after;
};

class Peer {
 public:
  virtual ~Peer() = default;
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// Builds the other end. `lease` is how long it may live without a word from here.
  [[nodiscard]] virtual Result<EndpointDescription> open(const TrafficPlan& plan,
                                                         std::chrono::seconds lease) = 0;
  /// Connects it to this end and starts its threads; `duration` is that of a bidirectional run.
  [[nodiscard]] virtual Result<void> connect(const EndpointDescription& requester,
                                             std::chrono::nanoseconds duration) = 0;
  /// Stops it, gathers what it saw, frees all it held.
  [[nodiscard]] virtual Result<PeerReport> finish(const RequestReport& requests) = 0;
  /// Drops whatever is open, without a report.
  virtual void abandon() = 0;
  /// Makes a call under way, and traffic, end soon: within the plan's stall limit. From any thread.
  virtual void interrupt() {}
  /// "rxe1 in this process", "host:port".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// The other end inside this process, on a device of its own.
[[nodiscard]] std::unique_ptr<Peer> local_peer(std::string device, int port, std::string gid_rule);

/// How a target reaches a peer named "host:port"; set by what knows the control channel.
using PeerConnector = std::function<Result<std::unique_ptr<Peer>>(
    const std::string& address, const std::map<std::string, std::string>& options)>;

}  // namespace greynic::verbs
