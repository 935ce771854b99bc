#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "agent.grpc.pb.h"
#include "greynic/agent/agent.h"

namespace greynic::agent {
namespace {

/// Takes connections and closes them again, as a host does whose agent is not up, and counts them.
class ClosedDoor {
 public:
  ClosedDoor() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(socket_, 16);
    socklen_t length = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int taken = 0; (taken = accept(socket_, nullptr, nullptr)) >= 0;) {
        ++count_;
        linger hard{1, 0};  // a reset: the port is free at once
        setsockopt(taken, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        ::close(taken);
      }
    });
  }
  ~ClosedDoor() { remove(); }
  void remove() {
    if (socket_ < 0) return;
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
    socket_ = -1;
  }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int count() const { return count_; }

 private:
  int socket_;
  int port_ = 0;
  std::atomic<int> count_ = 0;
  std::thread thread_;
};

struct Host final : wire::Agent::Service {
  grpc::Status Open(grpc::ServerContext*, const wire::OpenRequest*,
                    wire::OpenReply* reply) override {
    ++opened;
    reply->set_protocol(verbs::kPeerProtocol + 1);
    return grpc::Status::OK;
  }
  int opened = 0;
};

// Claim:  a peer that is away is waited for once; after that each run looks for it once, and finds
//         it when it is back.
// Oracle: connections that a socket in its place counts; then a server at the same port.
TEST(RemotePeer, WaitsOnceForAPeerThatStaysAway) {
  ClosedDoor door;
  auto peer = remote_peer("127.0.0.1:" + std::to_string(door.port()), {});
  ASSERT_TRUE(peer.has_value()) << peer.error().message;
  ASSERT_FALSE((*peer)->open({}, std::chrono::seconds(5)).has_value());
  EXPECT_GT(door.count(), 2) << "a peer may be starting just now";
  for (int run = 0; run < 3; ++run) {
    const int before = door.count();
    const auto opened = (*peer)->open({}, std::chrono::seconds(5));
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().message.find("is not reached"), std::string::npos);
    EXPECT_GE(door.count(), before + 1);
    EXPECT_LE(door.count(), before + 2) << "one look, and what gRPC says of it";
  }
  door.remove();
  Host host;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(door.port()),
                           grpc::InsecureServerCredentials());
  builder.RegisterService(&host);
  const auto server = builder.BuildAndStart();
  if (server == nullptr)
    GTEST_SKIP() << "another program took the port meanwhile; run the test again";
  // A look lasts half a second, in which a busy machine may answer nothing.
  for (int run = 0; run < 50 && host.opened == 0; ++run) {
    (void)(*peer)->open({}, std::chrono::seconds(5));
  }
  EXPECT_EQ(host.opened, 1);
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace greynic::agent
