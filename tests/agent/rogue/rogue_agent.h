#pragma once

/// An agent that lies: each call goes to an honest agent, and a lie changes its answer.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent.grpc.pb.h"

namespace greynic::agent {

struct AgentLie {
  std::string name;
  bool measured = false;  ///< the run may be measured all the same
  bool both_ways = false;
  std::function<void(wire::OpenReply&)> open;
  std::function<void(wire::ConnectReply&)> connect;
  std::function<void(wire::FinishReply&)> finish;
  grpc::Status status;  ///< of Finish
  /// The call that is never answered: 'O', 'C' or 'F'.
  char silent = 0;
};

/// At least fifty.
[[nodiscard]] const std::vector<AgentLie>& agent_lies();

class RogueAgent final : public wire::Agent::Service {
 public:
  RogueAgent(AgentLie lie, const std::string& honest_address);
  ~RogueAgent() override;
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Open(grpc::ServerContext* context, const wire::OpenRequest* request,
                    wire::OpenReply* reply) override;
  grpc::Status Connect(grpc::ServerContext* context, const wire::ConnectRequest* request,
                       wire::ConnectReply* reply) override;
  grpc::Status Finish(grpc::ServerContext* context, const wire::FinishRequest* request,
                      wire::FinishReply* reply) override;
  grpc::Status Abandon(grpc::ServerContext* context, const wire::AbandonRequest* request,
                       wire::AbandonReply* reply) override;

 private:
  AgentLie lie_;
  std::unique_ptr<wire::Agent::Stub> honest_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace greynic::agent
