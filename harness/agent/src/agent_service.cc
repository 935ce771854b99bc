#include "agent_service.h"

#include <fmt/core.h>

#include <algorithm>

#include "wire_messages.h"

namespace greynic::agent {
namespace {

constexpr std::uint64_t kMostSeconds = 1U << 30U;  // what a chrono::seconds surely holds

}  // namespace

grpc::Status AgentService::Open(grpc::ServerContext* context, const wire::OpenRequest* request,
                                wire::OpenReply* reply) {
  ++calls_;
  const Caller caller = caller_of(*context);
  if (auto status = admit_(caller); !status.ok()) return status;
  reply->set_protocol(verbs::kPeerProtocol);
  if (request->protocol() != verbs::kPeerProtocol) {
    write(Error{ErrorCode::kIo, fmt::format("the agent speaks protocol {}, the caller {}; install "
                                            "the same version on both",
                                            verbs::kPeerProtocol, request->protocol())},
          *reply->mutable_fault());
    return grpc::Status::OK;
  }
  const auto plan = read(request->plan());
  const std::chrono::seconds lease(std::min(request->lease_seconds(), kMostSeconds));
  const auto opened =
      plan ? desk_.open(caller, *plan, lease) : Result<RunDesk::Opened>(pass_on(plan));
  if (!opened) {
    write(opened.error(), *reply->mutable_fault());
  } else if (opened->busy) {
    reply->set_busy(true);
  } else {
    reply->set_session(opened->session);
    write(opened->endpoint, *reply->mutable_endpoint());
  }
  return grpc::Status::OK;
}

grpc::Status AgentService::Connect(grpc::ServerContext* context,
                                   const wire::ConnectRequest* request, wire::ConnectReply* reply) {
  ++calls_;
  const Caller caller = caller_of(*context);
  if (auto status = admit_(caller); !status.ok()) return status;
  const auto remote = read(request->endpoint());
  const auto done = remote
                        ? desk_.connect(caller, request->session(), *remote, request->duration_ns())
                        : Result<void>(pass_on(remote));
  if (!done) write(done.error(), *reply->mutable_fault());
  // What cannot be read ends the run too: its caller is broken.
  if (!remote) desk_.abandon(caller, request->session());
  return grpc::Status::OK;
}

grpc::Status AgentService::Finish(grpc::ServerContext* context, const wire::FinishRequest* request,
                                  wire::FinishReply* reply) {
  ++calls_;
  const Caller caller = caller_of(*context);
  if (auto status = admit_(caller); !status.ok()) return status;
  verbs::RequestReport requests;
  requests.completed_by_lane.assign(request->completed_by_lane().begin(),
                                    request->completed_by_lane().end());
  if (request->failed()) requests.failure = verbs::Failure{};
  const auto report = desk_.finish(caller, request->session(), requests);
  if (report) {
    write(*report, *reply);
  } else {
    write(report.error(), *reply->mutable_fault());
  }
  return grpc::Status::OK;
}

grpc::Status AgentService::Abandon(grpc::ServerContext* context,
                                   const wire::AbandonRequest* request, wire::AbandonReply*) {
  ++calls_;
  const Caller caller = caller_of(*context);
  if (auto status = admit_(caller); !status.ok()) return status;
  desk_.abandon(caller, request->session());
  return grpc::Status::OK;
}

}  // namespace greynic::agent
