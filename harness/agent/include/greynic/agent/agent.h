#pragma once

/// `greynic agent`: one end of a run on another host, controlled over gRPC.
///
/// With certificates both sides prove who they are (mutual TLS). Without, an agent listens on the
/// loopback interface only, and says so. An agent serves one run at a time and tells a second
/// caller that it is busy. It drops a run whose caller is silent for longer than the lease, and
/// frees its queues.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/verbs/peer.h"

namespace greynic::agent {

/// Certificates of a lab in one directory: ca.pem, agent.pem, agent.key, client.pem, client.key
/// (docs/formats/agent_certificates.md). Keys are readable by their owner only. Errors: kBadInput
/// when `directory` already holds a lab (nothing is overwritten), kIo.
[[nodiscard]] Result<void> create_certificates(const std::string& directory,
                                               const std::vector<std::string>& agent_names);

struct AgentOptions {
  std::string listen = "127.0.0.1:18600";
  std::string certificates;  ///< directory; empty: no TLS, loopback only
  std::string device;
  int port = 1;
  std::string gid_rule = "auto";
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
  struct Service;
  explicit Agent(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

/// A peer behind an agent. Options: certificates=DIR. It connects at the first open: a peer that is
/// away is an outcome of the runs that need it, not an error of the target.
[[nodiscard]] Result<std::unique_ptr<verbs::Peer>> remote_peer(
    const std::string& address, const std::map<std::string, std::string>& options);

}  // namespace greynic::agent
