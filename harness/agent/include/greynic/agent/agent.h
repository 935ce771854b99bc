#pragma once

/// `greynic agent`: one end of a run on another host, controlled over gRPC.
///
/// With certificates both sides prove who they are (mutual TLS). Without, an agent listens on the
/// loopback interface only, and says so. An agent serves one run at a time and tells a second
/// caller that it is busy. It drops a run whose caller is silent for longer than the lease, or
/// whose connection has gone, and frees its queues. What a caller may cost is bounded
/// (docs/security.md).
///
/// The directory of certificates is read anew when its files change: new ones serve who comes from
/// then on, and whose certificate stands in the file `revoked` is turned away.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/verbs/peer.h"

namespace greynic::agent {

/// Certificates of a lab in one directory: ca.pem, agent.pem, agent.key, client.pem, client.key
/// (docs/formats/agent_certificates.md), and a directory of its own in it for each of
/// `client_names`. Directories and keys are for their owner only, whatever the umask. Errors:
/// kBadInput when `directory` already holds a lab (nothing is overwritten), kIo.
[[nodiscard]] Result<void> create_certificates(const std::string& directory,
                                               const std::vector<std::string>& agent_names,
                                               const std::vector<std::string>& client_names = {});

/// Adds the certificate in the file `pem` to those that agents and clients with this directory turn
/// away. kBadInput when it is none.
[[nodiscard]] Result<void> revoke_certificate(const std::string& directory, const std::string& pem);

struct AgentOptions {
  std::string listen = "127.0.0.1:18600";
  std::string certificates;  ///< directory; empty: no TLS, loopback only
  std::string device;
  int port = 1;
  std::string gid_rule = "auto";
  std::chrono::seconds longest_run{3600};  ///< with what surrounds it: no lease is longer
  /// Lines for a log, safe to print; called from several threads. Empty: nothing is told.
  std::function<void(std::string_view)> tell;
};

class Agent {
 public:
  /// Errors: kBadInput (an address other than loopback without certificates), kMissing (device or
  /// certificates), kIo (the address is taken).
  [[nodiscard]] static Result<std::unique_ptr<Agent>> start(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// "127.0.0.1:18600"; with port 0 in the options, the one that was given.
  [[nodiscard]] const std::string& address() const;
  /// Control messages received so far, whoever sent them.
  [[nodiscard]] std::uint64_t calls() const;
  /// Serves until `stop` is set.
  void serve(const std::atomic<bool>& stop);

 private:
  struct State;
  explicit Agent(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A peer behind an agent. Options: certificates=DIR. It connects at the first open: a peer that is
/// away is an outcome of the runs that need it, not an error of the target.
[[nodiscard]] Result<std::unique_ptr<verbs::Peer>> remote_peer(
    const std::string& address, const std::map<std::string, std::string>& options);

}  // namespace greynic::agent
