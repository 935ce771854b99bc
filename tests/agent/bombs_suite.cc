/// Messages that are small on the wire and large once they are unpacked, from either end.

#include <gtest/gtest.h>

#include "rogue/child_agent.h"
#include "rogue/rogue_client.h"

namespace greynic::agent {
namespace {

constexpr std::size_t kUnpacked = std::size_t{256} << 20;
/// An agent may hold 64 MiB of a message, twice while it reads it.
constexpr std::size_t kMost = std::size_t{128} << 20;

// Claim:  a message of a quarter of a megabyte that unpacks to 256 MiB is refused unpacked, and others are
//         served.
// Oracle: the kernel's record of the agent's memory.
TEST(Bombs, OfAClientAreNotUnpacked) {
  ChildAgent agent;
  std::string reason;
  EXPECT_TRUE(agent.measures(reason)) << reason;
  const std::size_t before = agent.peak_bytes();
  RogueClient rogue(agent.address());
  wire::ConnectRequest request;
  request.mutable_endpoint()->set_gid(std::string(kUnpacked, '\0'));
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    wire::ConnectReply reply;
    EXPECT_FALSE(rogue.stub().Connect(&context, request, &reply).ok());
  }
  EXPECT_LT(agent.peak_bytes(), before + kMost);
  EXPECT_TRUE(agent.measures(reason)) << reason;
}

/// Answers every Open with a bomb.
class BombingAgent final : public wire::Agent::Service {
 public:
  explicit BombingAgent(grpc_compression_algorithm algorithm) : algorithm_(algorithm) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~BombingAgent() override { server_->Shutdown(std::chrono::system_clock::now()); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Open(grpc::ServerContext* context, const wire::OpenRequest*,
                    wire::OpenReply* reply) override {
    context->set_compression_algorithm(algorithm_);
    reply->mutable_endpoint()->set_gid(std::string(kUnpacked, '\0'));
    return grpc::Status::OK;
  }

 private:
  grpc_compression_algorithm algorithm_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Claim:  the same of an agent's answers, at the client.
TEST(Bombs, OfAnAgentAreNotUnpacked) {
  ChildAgent child;
  std::string reason;
  EXPECT_TRUE(child.measures(reason)) << reason;
  const std::size_t before = child.peak_bytes();
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const BombingAgent bombing(algorithm);
    EXPECT_FALSE(child.measures_at(bombing.address(), reason)) << reason;
  }
  EXPECT_LT(child.peak_bytes(), before + kMost);
  EXPECT_TRUE(child.measures(reason)) << reason;
}

}  // namespace
}  // namespace greynic::agent
