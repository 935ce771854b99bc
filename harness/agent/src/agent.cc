#include "greynic/agent/agent.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <charconv>
#include <mutex>
#include <thread>

#include "agent.grpc.pb.h"
#include "credentials.h"
#include "unreachable_reason.h"
#include "wire_messages.h"

namespace greynic::agent {
namespace {

using Clock = std::chrono::steady_clock;

/// "HOST:PORT" with a port that is a number, as "[::1]:18600" and "lab7:18600".
bool is_address(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string host = listen.substr(0, colon);
  if (host.find(':') != std::string::npos && (host.front() != '[' || host.back() != ']')) {
    return false;
  }
  unsigned port = 0;
  const char* const end = listen.data() + listen.size();
  const auto [stop, error] = std::from_chars(listen.data() + colon + 1, end, port);
  return error == std::errc{} && stop == end && port <= 65535;
}

/// By number, not by how it begins: "127.lab.example" may be anywhere.
bool is_loopback(const std::string& listen) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  in_addr number{};
  if (inet_pton(AF_INET, host.c_str(), &number) == 1) return (ntohl(number.s_addr) >> 24) == 127;
  return host == "localhost" || host == "[::1]";
}

}  // namespace

struct Agent::Service final : wire::Agent::Service {
  std::unique_ptr<verbs::Peer> peer;
  std::unique_ptr<grpc::Server> server;
  std::string address;
  std::mutex mutex;
  std::uint64_t session = 0;  ///< 0: none is open
  std::uint64_t last_session = 0;
  std::chrono::seconds lease{};
  Clock::time_point deadline{};
  std::atomic<std::uint64_t> calls = 0;

  // Calls of a session come one after another; the mutex is for callers that do not know of it.

  grpc::Status Open(grpc::ServerContext*, const wire::OpenRequest* request,
                    wire::OpenReply* reply) override {
    ++calls;
    const std::lock_guard lock(mutex);
    reply->set_protocol(verbs::kPeerProtocol);
    if (request->protocol() != verbs::kPeerProtocol) {
      write(
          Error{ErrorCode::kIo, fmt::format("the agent speaks protocol {}, the caller {}; install "
                                            "the same version on both",
                                            verbs::kPeerProtocol, request->protocol())},
          *reply->mutable_fault());
      return grpc::Status::OK;
    }
    drop_expired();
    if (session != 0) {
      reply->set_busy(true);
      return grpc::Status::OK;
    }
    lease = std::chrono::seconds(std::min<std::uint64_t>(request->lease_seconds(), 86400));
    const auto made = peer->open(read(request->plan()), lease);
    if (!made) {
      write(made.error(), *reply->mutable_fault());
      return grpc::Status::OK;
    }
    session = ++last_session;
    deadline = Clock::now() + lease;
    reply->set_session(session);
    write(*made, *reply->mutable_endpoint());
    return grpc::Status::OK;
  }

  grpc::Status Connect(grpc::ServerContext*, const wire::ConnectRequest* request,
                       wire::ConnectReply* reply) override {
    ++calls;
    const std::lock_guard lock(mutex);
    if (!holds(request->session(), *reply->mutable_fault())) return grpc::Status::OK;
    reply->clear_fault();
    const auto remote = read(request->endpoint());
    const auto done = remote
                          ? peer->connect(*remote, std::chrono::nanoseconds(request->duration_ns()))
                          : Result<void>(pass_on(remote));
    if (!done) {
      write(done.error(), *reply->mutable_fault());
      close();
    }
    return grpc::Status::OK;
  }

  grpc::Status Finish(grpc::ServerContext*, const wire::FinishRequest* request,
                      wire::FinishReply* reply) override {
    ++calls;
    const std::lock_guard lock(mutex);
    if (!holds(request->session(), *reply->mutable_fault())) return grpc::Status::OK;
    reply->clear_fault();
    verbs::RequestReport requests;
    requests.completed_by_lane.assign(request->completed_by_lane().begin(),
                                      request->completed_by_lane().end());
    if (request->failed()) requests.failure = verbs::Failure{};
    const auto report = peer->finish(requests);
    if (report) {
      write(*report, *reply);
    } else {
      write(report.error(), *reply->mutable_fault());
    }
    close();
    return grpc::Status::OK;
  }

  grpc::Status Abandon(grpc::ServerContext*, const wire::AbandonRequest* request,
                       wire::AbandonReply*) override {
    ++calls;
    const std::lock_guard lock(mutex);
    if (session != 0 && request->session() == session) close();
    return grpc::Status::OK;
  }

  void drop_expired() {
    if (session != 0 && Clock::now() > deadline) close();
  }

 private:
  bool holds(std::uint64_t wanted, wire::Fault& fault) {
    if (session != 0 && wanted == session) {
      deadline = Clock::now() + lease;
      return true;
    }
    write(Error{ErrorCode::kIo,
                "the agent dropped this run: its lease ended, or the agent was "
                "started anew"},
          fault);
    return false;
  }

  void close() {
    peer->abandon();
    session = 0;
  }
};

Agent::Agent(std::unique_ptr<Service> service) : service_(std::move(service)) {}

Agent::~Agent() {
  service_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  service_->server->Wait();
}

const std::string& Agent::address() const { return service_->address; }
std::uint64_t Agent::calls() const { return service_->calls; }

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options) {
  silence_grpc();
  if (!is_address(options.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--listen {}: not ADDRESS:PORT, such as 0.0.0.0:18600 or [::]:18600",
                            options.listen));
  }
  if (options.certificates.empty() && !is_loopback(options.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("without certificates the agent listens on loopback only, not on {}; "
                            "make some with `greynic agent init DIR` and give --certificates DIR",
                            options.listen));
  }
  // Opened once here, so that a missing device or GID is told now and not at the first run.
  const auto device = verbs::Device::open(options.device, options.port);
  if (!device) return pass_on(device);
  if (const auto port = device->port_state(); port && port->active && port->ethernet) {
    const auto entries = device->gids();
    if (!entries) return pass_on(entries);
    if (const auto gid = verbs::choose_gid(*entries, options.gid_rule); !gid) {
      return gid.error().while_doing("choosing a GID of " + options.device);
    }
  }
  auto credentials = server_credentials(options.certificates);
  if (!credentials) return pass_on(credentials);
  auto service = std::make_unique<Service>();
  service->peer = verbs::local_peer(options.device, options.port, options.gid_rule);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, *credentials, &port);
  // Two agents on one port would take turns; a second one is a mistake.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.RegisterService(service.get());
  service->server = builder.BuildAndStart();
  if (!service->server || port == 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot listen on {}: the port is taken, or this host has no such "
                            "address; port 0 takes a free one",
                            options.listen));
  }
  service->address = options.listen.substr(0, options.listen.rfind(':') + 1) + std::to_string(port);
  return std::unique_ptr<Agent>(new Agent(std::move(service)));
}

void Agent::serve(const std::atomic<bool>& stop) {
  while (!stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::lock_guard lock(service_->mutex);
    service_->drop_expired();
  }
}

}  // namespace greynic::agent
