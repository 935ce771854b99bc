#pragma once

/// Both ends of a lab's gRPC: who serves and who calls prove who they are by the certificates of one
/// directory (mutual TLS). Without certificates a server listens on loopback only.
///
/// The server's directory is read anew when its files change: new ones serve who comes from then on,
/// and whose certificate stands in the file `revoked` is turned away. What a caller may cost is
/// bounded (docs/security.md).

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace grpc {
class Channel;
class ClientContext;
class ServerContext;
class Service;
class Status;
}  // namespace grpc

namespace greynic::agent {

/// Who is at the other end of a call.
struct Caller {
  std::string owner;        ///< fingerprint of its certificate; empty without TLS
  std::string common_name;  ///< in its certificate, as its lab's authority wrote it
  std::string connection;   ///< "10.0.0.7:41234", as daemon::Door names it
  std::string name;         ///< for logs: safe to print
};
[[nodiscard]] Caller caller_of(const grpc::ServerContext& context);

class LabServer {
 public:
  struct Options {
    std::string program;  ///< for messages: "greynic agent"
    std::string listen;
    std::string certificates;  ///< directory; empty: no TLS, loopback only
    /// A connection that says nothing for so long is closed.
    std::chrono::seconds longest_silence{3600};
    /// A service for a server; made again when the certificates change, and never called after the
    /// LabServer has gone.
    std::function<std::unique_ptr<grpc::Service>(LabServer&)> make_service;
    std::function<void()> each_turn;             ///< some ten times a second
    std::function<void(std::string_view)> tell;  ///< lines for a log; from several threads
  };

  /// Errors: kBadInput (no address, or one other than loopback without certificates), kMissing
  /// (certificates), kIo (the address is taken).
  [[nodiscard]] static Result<std::unique_ptr<LabServer>> start(Options options);
  ~LabServer();
  LabServer(const LabServer&) = delete;
  LabServer& operator=(const LabServer&) = delete;

  /// The address with which start() would refuse, in words; ok otherwise.
  [[nodiscard]] static Result<void> check_address(const Options& options);

  /// "127.0.0.1:18600"; with port 0 in the options, the one that was given.
  [[nodiscard]] const std::string& address() const;
  /// Whether a caller may speak; each call of a service asks first.
  [[nodiscard]] grpc::Status admit(const Caller& caller);
  [[nodiscard]] bool is_open(const std::string& connection) const;
  [[nodiscard]] bool is_revoked(const std::string& owner) const;

 private:
  struct State;
  explicit LabServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A channel to a server of the lab.
class LabClient {
 public:
  /// Connects to nobody yet. kBadInput: no HOST:PORT. kMissing: certificates.
  [[nodiscard]] static Result<LabClient> open(const std::string& address,
                                              const std::string& certificates);
  LabClient(LabClient&&) noexcept;
  LabClient& operator=(LabClient&&) noexcept;
  ~LabClient();

  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const;
  /// Forgets how long to wait for the next try.
  void connect_afresh();
  /// kIo when the other side of this call showed a certificate that was revoked.
  [[nodiscard]] Result<void> trust(const grpc::ClientContext& context) const;

 private:
  struct State;
  explicit LabClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What gRPC's words for a connection that failed mean, and what to do.
[[nodiscard]] std::string why_unreached(std::string_view grpc_words, std::string_view program);

}  // namespace greynic::agent
