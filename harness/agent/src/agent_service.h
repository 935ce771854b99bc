#pragma once

/// The calls of agent.proto: who may call, what a message means, and what the desk answers.

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>

#include "agent.grpc.pb.h"
#include "greynic/agent/lab.h"
#include "run_desk.h"

namespace greynic::agent {

class AgentService final : public wire::Agent::Service {
 public:
  /// Whether a caller may speak: lets it in, or turns it away with the reason.
  using Admit = std::function<grpc::Status(const Caller&)>;
  AgentService(RunDesk& desk, Admit admit, std::atomic<std::uint64_t>& calls)
      : desk_(desk), admit_(std::move(admit)), calls_(calls) {}

  grpc::Status Open(grpc::ServerContext* context, const wire::OpenRequest* request,
                    wire::OpenReply* reply) override;
  grpc::Status Connect(grpc::ServerContext* context, const wire::ConnectRequest* request,
                       wire::ConnectReply* reply) override;
  grpc::Status Finish(grpc::ServerContext* context, const wire::FinishRequest* request,
                      wire::FinishReply* reply) override;
  grpc::Status Abandon(grpc::ServerContext* context, const wire::AbandonRequest* request,
                       wire::AbandonReply* reply) override;

 private:
  RunDesk& desk_;
  Admit admit_;
  std::atomic<std::uint64_t>& calls_;
};

}  // namespace greynic::agent
