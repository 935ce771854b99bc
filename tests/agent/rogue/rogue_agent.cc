#include "rogue/rogue_agent.h"

#include <limits>
#include <thread>

#include "greynic/verbs/peer.h"

namespace greynic::agent {
namespace {

/// Waits until the caller has given up.
void never_answer(const grpc::ServerContext& context) {
  while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kHuge = ~std::uint64_t{0};

AgentLie in_open(std::string name, std::function<void(wire::OpenReply&)> lie,
                 bool measured = false) {
  return {.name = std::move(name), .measured = measured, .open = std::move(lie)};
}
/// About what the agent receives from: it must know of both ends.
AgentLie in_endpoint(std::string name, const std::function<void(wire::Endpoint&)>& lie,
                     bool measured = false) {
  return {.name = std::move(name),
          .measured = measured,
          .both_ways = true,
          .open = [lie](wire::OpenReply& reply) { lie(*reply.mutable_endpoint()); }};
}
AgentLie in_finish(std::string name, std::function<void(wire::FinishReply&)> lie,
                   bool measured = false) {
  return {.name = std::move(name), .measured = measured, .finish = std::move(lie)};
}
AgentLie in_requests(std::string name, const std::function<void(wire::Requests&)>& lie,
                     bool measured = false) {
  return {.name = std::move(name),
          .measured = measured,
          .both_ways = true,
          .finish = [lie](wire::FinishReply& reply) { lie(*reply.mutable_requests()); }};
}

const std::string kEscapes = "\x1b[2J\n\rgreynic: all is well\xff\xfe";

std::vector<AgentLie> opens() {
  return {
      in_open("NextProtocol", [](auto& reply) { reply.set_protocol(verbs::kPeerProtocol + 1); }),
      in_open("NoProtocol", [](auto& reply) { reply.clear_protocol(); }),
      in_open("NoSession", [](auto& reply) { reply.set_session(0); }),
      in_open("AnotherSession", [](auto& reply) { reply.set_session(12345); }),
      in_open("AFaultOfEscapes", [](auto& reply) { reply.mutable_fault()->set_message(kEscapes); }),
      in_open("AFaultOfNoKnownCode",
              [](auto& reply) {
                reply.mutable_fault()->set_code(-7);
                reply.mutable_fault()->set_message("x");
              }),
      in_open("AFaultThatWouldBeOurBug",
              [](auto& reply) {
                reply.mutable_fault()->set_code(static_cast<int>(ErrorCode::kInternal));
                reply.mutable_fault()->set_message("x");
              }),
      in_open("AFaultOfTenMegabytes",
              [](auto& reply) { reply.mutable_fault()->set_message(std::string(10 << 20, '\n')); }),
      in_open("NoEndpoint", [](auto& reply) { reply.clear_endpoint(); }),
      in_open("AReplyBeyondTheLimit",
              [](auto& reply) { reply.mutable_endpoint()->set_gid(std::string(65 << 20, 'x')); }),
  };
}

std::vector<AgentLie> endpoints() {
  using End = wire::Endpoint;
  return {
      in_endpoint("AShortGid", [](End& end) { end.set_gid("abc"); }),
      in_endpoint("ALongGid", [](End& end) { end.set_gid(std::string(17, 'x')); }),
      in_endpoint("ALidBeyondItsBits", [](End& end) { end.set_lid(1 << 20); }),
      in_endpoint("APortBeyondItsBits", [](End& end) { end.set_listens_at(1 << 20); }),
      in_endpoint("NoQps", [](End& end) { end.clear_qp_numbers(); }),
      in_endpoint("FewerQps", [](End& end) { end.mutable_qp_numbers()->Truncate(2); }),
      in_endpoint("MoreQps", [](End& end) { end.add_qp_numbers(7); }),
      in_endpoint("AMillionQps",
                  [](End& end) {
                    for (int i = 0; i < 1 << 20; ++i) end.add_qp_numbers(7);
                  }),
      in_endpoint("NoTargets", [](End& end) { end.clear_xrc_targets(); }),
      in_endpoint("FewerTargets", [](End& end) { end.mutable_xrc_targets()->Truncate(2); }),
      in_endpoint("NoReceiveQueues", [](End& end) { end.clear_srq_numbers(); }),
      in_endpoint("MoreReceiveQueues", [](End& end) { end.add_srq_numbers(7); }),
      in_endpoint("KeysWithoutAddresses", [](End& end) { end.clear_target_addresses(); }),
      in_endpoint("AddressesWithoutKeys", [](End& end) { end.clear_target_keys(); }),
      in_endpoint("NoRegions",
                  [](End& end) {
                    end.clear_target_keys();
                    end.clear_target_addresses();
                  }),
      in_endpoint("MoreRegions",
                  [](End& end) {
                    end.add_target_keys(1);
                    end.add_target_addresses(1);
                  }),
      in_endpoint("WindowsThatNobodyNeeds", [](End& end) { end.add_window_keys(1); }),
      in_endpoint("QpsThatAreNowhere",
                  [](End& end) {
                    for (auto& number : *end.mutable_xrc_targets()) number = UINT32_MAX;
                  }),
      in_endpoint("QueuesThatAreNowhere",
                  [](End& end) {
                    for (auto& number : *end.mutable_srq_numbers()) number = UINT32_MAX;
                  }),
      in_endpoint(
          "ASequenceBeyondItsBits", [](End& end) { end.set_psn(UINT32_MAX); }, true),
      in_endpoint(
          "AddressesThatAreNowhere",
          [](End& end) {
            for (auto& address : *end.mutable_target_addresses()) address = kHuge;
          },
          true),
  };
}

std::vector<AgentLie> ends_of_runs() {
  using Reply = wire::FinishReply;
  using Requests = wire::Requests;
  return {
      {.name = "ConnectedToAFault",
       .connect = [](auto& reply) { reply.mutable_fault()->set_message(kEscapes); }},
      {.name = "AStatusOfEscapes", .status = {grpc::StatusCode::INTERNAL, kEscapes}},
      {.name = "AStatusOfAKilobyte", .status = {grpc::StatusCode::UNKNOWN, std::string(1000, 'x')}},
      in_finish("AFaultAtTheEnd", [](Reply& reply) { reply.mutable_fault()->set_message("x"); }),
      in_finish("WhatItNeverSent", [](Reply& reply) { reply.mutable_requests()->set_posted(1); }),
      in_finish("AFailureOfEscapes",
                [](Reply& reply) {
                  reply.mutable_failure()->set_outcome(3);
                  reply.mutable_failure()->set_reason(kEscapes);
                }),
      in_finish("AFailureThatWasMeasured",
                [](Reply& reply) {
                  reply.mutable_failure()->set_outcome(1);
                  reply.mutable_failure()->set_reason("x");
                }),
      in_finish("AFailureOfNoKnownOutcome",
                [](Reply& reply) {
                  reply.mutable_failure()->set_outcome(4000);
                  reply.mutable_failure()->set_reason("x");
                }),
      in_finish("AFailureOfTenMegabytes",
                [](Reply& reply) {
                  reply.mutable_failure()->set_outcome(3);
                  reply.mutable_failure()->set_reason(std::string(10 << 20, '\x1b'));
                }),
      in_finish("ACounterThatIsNoNumber",
                [](Reply& reply) { (*reply.mutable_counters_after())["x"] = kNan; }),
      in_finish("ACounterWithoutEnd",
                [](Reply& reply) { (*reply.mutable_counters_before())["x"] = kInfinity; }),
      in_finish("CountersWithoutEnd",
                [](Reply& reply) {
                  for (int i = 0; i < 10000; ++i) {
                    (*reply.mutable_counters_after())[std::to_string(i)] = 1;
                  }
                }),
      in_finish(
          "ACounterNamedByEscapes",
          [](Reply& reply) { (*reply.mutable_counters_after())[kEscapes] = 1; }, true),
      in_finish(
          "ACounterOfALongName",
          [](Reply& reply) { (*reply.mutable_counters_after())[std::string(1 << 20, 'x')] = 1; },
          true),
      in_finish(
          "MoreThanWasSent", [](Reply& reply) { reply.set_received(kHuge); }, true),
      in_finish(
          "OnlyErrors", [](Reply& reply) { reply.set_payload_errors(kHuge); }, true),
      {.name = "NothingOfItsOwn",
       .both_ways = true,
       .finish = [](Reply& reply) { reply.clear_requests(); }},
      in_requests("NoLanes", [](Requests& told) { told.clear_completed_by_lane(); }),
      in_requests("FewerLanes",
                  [](Requests& told) { told.mutable_completed_by_lane()->Truncate(2); }),
      in_requests("MoreLanes", [](Requests& told) { told.add_completed_by_lane(1); }),
      in_requests("AMillionLanes",
                  [](Requests& told) {
                    for (int i = 0; i < 1 << 20; ++i) told.add_completed_by_lane(1);
                  }),
      in_requests(
          "MessagesWithoutEnd",
          [](Requests& told) {
            for (auto& lane : *told.mutable_completed_by_lane()) lane = kHuge;
            told.set_posted(kHuge);
            told.set_completed(kHuge);
          },
          true),
      in_requests("ARateThatIsNoNumber",
                  [](Requests& told) { told.set_messages_per_second(kNan); }),
      in_requests("ARateWithoutEnd",
                  [](Requests& told) { told.set_messages_per_second(kInfinity); }),
      in_requests("ARateBelowZero", [](Requests& told) { told.set_messages_per_second(-1); }),
      in_requests("AFailureOfItsOwn",
                  [](Requests& told) {
                    told.mutable_failure()->set_outcome(UINT32_MAX);
                    told.mutable_failure()->set_reason(kEscapes);
                  }),
  };
}

}  // namespace

const std::vector<AgentLie>& agent_lies() {
  static const std::vector<AgentLie> all = [] {
    std::vector<AgentLie> lies;
    for (auto& part : {opens(), endpoints(), ends_of_runs()}) {
      lies.insert(lies.end(), part.begin(), part.end());
    }
    return lies;
  }();
  return all;
}

RogueAgent::RogueAgent(AgentLie lie, const std::string& honest_address) : lie_(std::move(lie)) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  honest_ = wire::Agent::NewStub(
      grpc::CreateCustomChannel(honest_address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

RogueAgent::~RogueAgent() { server_->Shutdown(std::chrono::system_clock::now()); }

grpc::Status RogueAgent::Open(grpc::ServerContext* context, const wire::OpenRequest* request,
                              wire::OpenReply* reply) {
  grpc::ClientContext asked;
  const grpc::Status status = honest_->Open(&asked, *request, reply);
  if (lie_.silent == 'O') never_answer(*context);
  if (lie_.open && !reply->busy()) lie_.open(*reply);
  return status;
}

grpc::Status RogueAgent::Connect(grpc::ServerContext* context, const wire::ConnectRequest* request,
                                 wire::ConnectReply* reply) {
  grpc::ClientContext asked;
  const grpc::Status status = honest_->Connect(&asked, *request, reply);
  if (lie_.silent == 'C') never_answer(*context);
  if (lie_.connect) lie_.connect(*reply);
  return status;
}

grpc::Status RogueAgent::Finish(grpc::ServerContext* context, const wire::FinishRequest* request,
                                wire::FinishReply* reply) {
  grpc::ClientContext asked;
  const grpc::Status status = honest_->Finish(&asked, *request, reply);
  if (lie_.silent == 'F') never_answer(*context);
  if (lie_.finish) lie_.finish(*reply);
  return lie_.status.ok() ? status : lie_.status;
}

grpc::Status RogueAgent::Abandon(grpc::ServerContext*, const wire::AbandonRequest* request,
                                 wire::AbandonReply* reply) {
  grpc::ClientContext asked;
  return honest_->Abandon(&asked, *request, reply);
}

}  // namespace greynic::agent
