#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "agent.grpc.pb.h"
#include "greynic/agent/agent.h"

namespace greynic::agent {
namespace {

/// An agent from the future: takes every run, under a protocol of its own.
struct Stranger final : wire::Agent::Service {
  grpc::Status Open(grpc::ServerContext*, const wire::OpenRequest* request,
                    wire::OpenReply* reply) override {
    asked = request->protocol();
    reply->set_protocol(verbs::kPeerProtocol + 1);
    reply->set_session(1);
    return grpc::Status::OK;
  }
  int asked = 0;
};

// Claim:  a peer that speaks another version is an error that names both versions, not a run.
// Oracle: a server that answers every Open well, but with the next protocol number.
TEST(RemotePeer, RefusesAnotherProtocolByNumber) {
  Stranger stranger;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&stranger);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  auto peer = remote_peer("127.0.0.1:" + std::to_string(port), {});
  ASSERT_TRUE(peer) << peer.error().message;
  const auto opened = (*peer)->open({}, std::chrono::seconds(5));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
  EXPECT_NE(opened.error().message.find(std::to_string(verbs::kPeerProtocol + 1)),
            std::string::npos)
      << opened.error().message;
  EXPECT_EQ(stranger.asked, verbs::kPeerProtocol);
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace greynic::agent
