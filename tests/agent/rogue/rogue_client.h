#pragma once

/// A client that says what no client of ours says.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent.grpc.pb.h"

namespace greynic::agent {

class RogueClient {
 public:
  explicit RogueClient(const std::string& address);
  ~RogueClient();
  RogueClient(const RogueClient&) = delete;
  RogueClient& operator=(const RogueClient&) = delete;

  /// An Open as an honest client sends it, but for what `lie` changes.
  wire::OpenReply open(const std::function<void(wire::OpenRequest&)>& lie = {});
  /// A Connect to a run that open() began; honest but for what `lie` changes.
  wire::ConnectReply connect(const std::function<void(wire::ConnectRequest&)>& lie = {});
  wire::FinishReply finish(const std::function<void(wire::FinishRequest&)>& lie = {});
  void abandon(std::uint64_t session);
  /// Bytes on a connection of their own, which then idles until this goes.
  void say(const std::string& bytes);
  [[nodiscard]] wire::Agent::Stub& stub() { return *stub_; }
  [[nodiscard]] std::uint64_t session() const { return session_; }

 private:
  std::string address_;
  std::unique_ptr<wire::Agent::Stub> stub_;
  std::vector<int> sockets_;
  std::uint64_t session_ = 0;
  wire::Endpoint endpoint_;
};

struct ClientLie {
  std::string name;
  std::function<void(RogueClient&)> tell;
};

/// At least fifty.
[[nodiscard]] const std::vector<ClientLie>& client_lies();

}  // namespace greynic::agent
