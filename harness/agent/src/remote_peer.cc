#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <future>
#include <thread>

#include "agent.grpc.pb.h"
#include "greynic/agent/agent.h"
#include "greynic/agent/lab.h"
#include "greynic/daemon/log.h"
#include "greynic/target/interrupt.h"
#include "greynic/verbs/patience.h"
#include "greynic/verbs/peer_claims.h"
#include "unreachable_reason.h"
#include "wire_messages.h"

namespace greynic::agent {
namespace {

constexpr std::chrono::seconds kReach{5};        // for a peer that is only just starting
constexpr std::chrono::milliseconds kLook{500};  // for one that was not there the last time
// A run that was killed keeps the agent until its lease ends, and two campaigns may take turns.
constexpr std::chrono::seconds kBusy{30};
constexpr std::chrono::seconds kSetUp{60};        // thousands of QPs take a slow device that long
constexpr std::chrono::milliseconds kGlance{50};  // at whether a Ctrl-C came
constexpr std::size_t kLongestWords = 300;

class RemotePeer final : public verbs::Peer {
 public:
  explicit RemotePeer(LabClient client) : address_(client.address()), client_(std::move(client)) {
    connect_afresh();
  }
  ~RemotePeer() override { abandon(); }

  Result<verbs::EndpointDescription> open(const verbs::TrafficPlan& plan,
                                          std::chrono::seconds lease) override {
    abandon();
    if (auto there = reach(); !there) return pass_on(there);
    wire::OpenRequest request;
    request.set_protocol(verbs::kPeerProtocol);
    request.set_lease_seconds(static_cast<std::uint64_t>(lease.count()));
    write(plan, *request.mutable_plan());
    wire::OpenReply reply;
    const auto give_up = std::chrono::steady_clock::now() + kBusy;
    while (true) {
      reply.Clear();
      if (auto done = call(&Calls::Open, request, reply, kSetUp); !done) {
        return pass_on(done);
      }
      if (!reply.busy()) break;
      if (std::chrono::steady_clock::now() > give_up || target::interrupted()) {
        return fail(ErrorCode::kIo,
                    fmt::format("peer {} is busy with another run, and was for {} s; wait for that "
                                "run, or start an agent of your own there on another port",
                                address_, kBusy.count()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (reply.protocol() != verbs::kPeerProtocol) {
      return fail(ErrorCode::kIo,
                  fmt::format("peer {} speaks protocol {}, this program {}; install the same "
                              "version on both",
                              address_, reply.protocol(), verbs::kPeerProtocol));
    }
    plan_ = plan;
    session_ = reply.session();
    auto description = read(reply.endpoint());
    if (description) {
      const verbs::EndpointRole own{.requests = true, .answers = plan.both_ways()};
      if (auto good = verbs::check_description(*description, plan, own); !good) {
        description = pass_on(good);
      }
    }
    if (!description) return description.error().while_doing("peer " + address_);
    return description;
  }

  Result<void> connect(const verbs::EndpointDescription& requester,
                       std::chrono::nanoseconds duration) override {
    wire::ConnectRequest request;
    request.set_session(session_);
    request.set_duration_ns(static_cast<std::uint64_t>(duration.count()));
    write(requester, *request.mutable_endpoint());
    wire::ConnectReply reply;
    return call(&Calls::Connect, request, reply, kSetUp);
  }

  Result<verbs::PeerReport> finish(const verbs::RequestReport& requests) override {
    wire::FinishRequest request;
    request.set_session(session_);
    request.mutable_completed_by_lane()->Assign(requests.completed_by_lane.begin(),
                                                requests.completed_by_lane.end());
    request.set_failed(requests.failure.has_value());
    wire::FinishReply reply;
    const auto patience =
        std::chrono::seconds(10) + std::chrono::ceil<std::chrono::seconds>(plan_.stall_limit);
    if (auto done = call(&Calls::Finish, request, reply, patience); !done) {
      return pass_on(done);
    }
    session_ = 0;
    verbs::PeerReport report = read(reply);
    if (auto good = verbs::check_report(report, plan_); !good) {
      return good.error().while_doing("peer " + address_);
    }
    return report;
  }

  void abandon() override {
    if (session_ == 0) return;
    wire::AbandonRequest request;
    request.set_session(session_);
    wire::AbandonReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    // Whether it is heard or not, the lease ends the run over there.
    (void)stub_->Abandon(&context, request, &reply);
    session_ = 0;
  }

  std::string name() const override { return address_; }

 private:
  void connect_afresh() {
    client_.connect_afresh();
    stub_ = wire::Agent::NewStub(client_.channel());
  }

  /// Waits for a peer that is only just starting; one that turns us away is told at once, and one
  /// that was waited for in vain is looked for once.
  Result<void> reach() {
    patience_.begin();
    if (patience_.in_vain()) connect_afresh();
    while (!(patience_.in_vain() ? look() : wait())) {
      if (target::interrupted()) return fail(ErrorCode::kInterrupted, "stopped by the user");
      const std::string words = last_words();
      if (!is_final(words) && patience_.look_again()) continue;
      return fail(ErrorCode::kIo, fmt::format("peer {} is not reached: {}", address_,
                                              why_unreached(words, "greynic agent")));
    }
    patience_.found();
    return {};
  }

  bool wait() {
    return client_.channel()->WaitForConnected(std::chrono::system_clock::now() + kLook);
  }

  /// One try to connect.
  bool look() {
    const auto end = std::chrono::system_clock::now() + kLook;
    while (true) {
      const grpc_connectivity_state state = client_.channel()->GetState(true);
      if (state == GRPC_CHANNEL_READY) return true;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
      if (!client_.channel()->WaitForStateChange(state, end)) return false;
    }
  }

  /// What gRPC says of a channel that is not connected.
  std::string last_words() {
    wire::AbandonReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    return stub_->Abandon(&context, wire::AbandonRequest(), &reply).error_message();
  }

  using Calls = class wire::Agent::Stub::async;
  template <typename Request, typename Reply>
  using Method = void (Calls::*)(grpc::ClientContext*, const Request*, Reply*,
                                 std::function<void(grpc::Status)>);

  /// Waits for the answer, but not after a Ctrl-C.
  template <typename Request, typename Reply>
  grpc::Status answer_of(grpc::ClientContext& context, Method<Request, Reply> method,
                         const Request& request, Reply& reply) {
    std::promise<grpc::Status> promise;
    auto answer = promise.get_future();
    (stub_->async()->*method)(&context, &request, &reply, [&promise](const grpc::Status& status) {
      promise.set_value(status);
    });
    while (answer.wait_for(kGlance) != std::future_status::ready) {
      if (target::interrupted()) context.TryCancel();
    }
    return answer.get();
  }

  template <typename Request, typename Reply>
  Result<void> call(Method<Request, Reply> method, const Request& request, Reply& reply,
                    std::chrono::seconds patience) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    const grpc::Status status = answer_of(context, method, request, reply);
    if (!status.ok() && target::interrupted()) {
      return fail(ErrorCode::kInterrupted, "stopped by the user");
    }
    if (!status.ok()) {
      const bool hung = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
      return fail(
          ErrorCode::kIo,
          hung ? fmt::format("peer {} did not answer within {} s", address_, patience.count())
               : fmt::format("peer {} is gone: {}", address_,
                             daemon::plain(status.error_message(), kLongestWords)));
    }
    if (auto trusted = client_.trust(context); !trusted) return trusted;
    if (reply.has_fault() && !reply.fault().message().empty()) {
      return read(reply.fault()).while_doing("peer " + address_);
    }
    return {};
  }

  std::string address_;
  LabClient client_;
  verbs::Patience patience_{kReach};
  std::unique_ptr<wire::Agent::Stub> stub_;
  std::uint64_t session_ = 0;
  verbs::TrafficPlan plan_;
};

}  // namespace

Result<std::unique_ptr<verbs::Peer>> remote_peer(
    const std::string& address, const std::map<std::string, std::string>& options) {
  const auto directory = options.find("certificates");
  auto client =
      LabClient::open(address, directory == options.end() ? std::string() : directory->second);
  if (!client) return pass_on(client);
  return std::unique_ptr<verbs::Peer>(std::make_unique<RemotePeer>(std::move(*client)));
}

}  // namespace greynic::agent
