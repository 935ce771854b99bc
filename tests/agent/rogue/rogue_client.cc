#include "rogue/rogue_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "greynic/verbs/peer.h"

namespace greynic::agent {
namespace {

constexpr std::uint32_t kHuge = UINT32_MAX;
constexpr std::uint32_t kLanes = 6;

void set_deadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

}  // namespace

RogueClient::RogueClient(const std::string& address) : address_(address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  stub_ = wire::Agent::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

RogueClient::~RogueClient() {
  for (const int socket : sockets_) close(socket);
}

wire::OpenReply RogueClient::open(const std::function<void(wire::OpenRequest&)>& lie) {
  wire::OpenRequest request;
  request.set_protocol(verbs::kPeerProtocol);
  request.set_lease_seconds(10);
  wire::Plan& plan = *request.mutable_plan();
  plan.set_transport(3);  // XRC
  plan.set_operation(3);  // WRITE
  plan.set_direction(1);  // both ways
  plan.set_qp_count(kLanes);
  plan.set_qps_per_cq(2);
  plan.set_send_depth(8);
  plan.set_receive_depth(8);
  plan.set_shared_receive_queue(true);
  plan.add_sizes(64);
  plan.set_sge_count(1);
  plan.set_mtu_bytes(1024);
  plan.set_signal_every(1);
  plan.set_post_batch(1);
  plan.set_receive_batch(1);
  plan.set_mr_count(1);
  plan.set_mr_bytes(65536);
  plan.set_thread_count(1);
  plan.set_extended_posting(true);
  plan.set_stall_limit_ms(1000);
  if (lie) lie(request);
  wire::OpenReply reply;
  for (int tries = 0; tries < 200; ++tries) {
    grpc::ClientContext context;
    set_deadline(context);
    reply.Clear();
    (void)stub_->Open(&context, request, &reply);
    if (!reply.busy()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  session_ = reply.session();
  endpoint_ = reply.endpoint();
  return reply;
}

wire::ConnectReply RogueClient::connect(const std::function<void(wire::ConnectRequest&)>& lie) {
  wire::ConnectRequest request;
  request.set_session(session_);
  request.set_duration_ns(50'000'000);
  // What the agent told of itself has the lengths that it expects of us; nobody is there.
  *request.mutable_endpoint() = endpoint_;
  request.mutable_endpoint()->clear_qp_numbers();
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    request.mutable_endpoint()->add_qp_numbers(0xabcdef);
  }
  if (lie) lie(request);
  wire::ConnectReply reply;
  grpc::ClientContext context;
  set_deadline(context);
  (void)stub_->Connect(&context, request, &reply);
  return reply;
}

wire::FinishReply RogueClient::finish(const std::function<void(wire::FinishRequest&)>& lie) {
  wire::FinishRequest request;
  request.set_session(session_);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) request.add_completed_by_lane(0);
  if (lie) lie(request);
  wire::FinishReply reply;
  grpc::ClientContext context;
  set_deadline(context);
  (void)stub_->Finish(&context, request, &reply);
  return reply;
}

void RogueClient::abandon(std::uint64_t session) {
  wire::AbandonRequest request;
  request.set_session(session);
  wire::AbandonReply reply;
  grpc::ClientContext context;
  set_deadline(context);
  (void)stub_->Abandon(&context, request, &reply);
}

void RogueClient::say(const std::string& bytes) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)::connect(made, reinterpret_cast<sockaddr*>(&to), sizeof to);
  (void)send(made, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  sockets_.push_back(made);
}

namespace {

using Plan = wire::Plan;

/// A lie in one field of the plan; what comes after Open is honest.
ClientLie plan_lie(const std::string& name, const std::function<void(Plan&)>& change) {
  return {name, [change](RogueClient& rogue) {
            rogue.open([&](wire::OpenRequest& request) { change(*request.mutable_plan()); });
            if (rogue.session() != 0) rogue.connect();
          }};
}

/// A run that is opened honestly and then connected to a lie.
ClientLie endpoint_lie(const std::string& name,
                       const std::function<void(wire::Endpoint&)>& change) {
  return {
      name, [change](RogueClient& rogue) {
        rogue.open();
        rogue.connect([&](wire::ConnectRequest& request) { change(*request.mutable_endpoint()); });
        rogue.finish();
      }};
}

ClientLie open_lie(const std::string& name, const std::function<void(wire::OpenRequest&)>& change) {
  return {name, [change](RogueClient& rogue) {
            rogue.open(change);
            if (rogue.session() != 0) rogue.connect();
          }};
}

/// An honest run up to Finish.
ClientLie finish_lie(const std::string& name,
                     const std::function<void(wire::FinishRequest&)>& change) {
  return {name, [change](RogueClient& rogue) {
            rogue.open();
            rogue.connect();
            rogue.finish(change);
          }};
}

std::string many(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::vector<ClientLie> bytes_on_the_wire() {
  const auto says = [](std::string name, std::string bytes, int times = 1) {
    return ClientLie{std::move(name), [bytes, times](RogueClient& rogue) {
                       for (int i = 0; i < times; ++i) rogue.say(bytes);
                     }};
  };
  return {
      says("ManySilentConnections", "", 700),
      says("ManyConnectionsOfOneByte", "P", 300),
      says("Garbage", many(1000, "\x7f\xff garbage \0")),
      says("HalfAPreface", kPreface.substr(0, 10)),
      says("APrefaceAndNothingElse", kPreface),
      says("AHelloOfTls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)),
      says("ARequestOfAnotherProtocol", "GET / HTTP/1.1\r\nHost: agent\r\n\r\n"),
      says("AMegabyteOfZeros", std::string(1 << 20, '\0')),
      says("AFrameThatNeverEnds", kPreface + std::string("\x00\x00\x00\x04\x00\x00\x00\x00\x00"
                                                         "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
                                                         18)),
      says("HeadersWithoutEnd",
           kPreface + std::string("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 9) +
               many(2000, std::string("\x00\x00\x01\x09\x00\x00\x00\x00\x01\x40", 10))),
      says("AThousandPings", kPreface + std::string("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 9) +
                                 many(1000, std::string("\x00\x00\x08\x06\x00\x00\x00\x00\x00"
                                                        "12345678",
                                                        17))),
  };
}

std::vector<ClientLie> words_and_queues() {
  return {
      plan_lie("NoSuchTransport", [](Plan& plan) { plan.set_transport(77); }),
      plan_lie("NoSuchOperation", [](Plan& plan) { plan.set_operation(kHuge); }),
      plan_lie("NoSuchDirection", [](Plan& plan) { plan.set_direction(9); }),
      plan_lie("NoSuchFault", [](Plan& plan) { plan.set_fault(4000); }),
      plan_lie("AFaultThatIsNotAsked", [](Plan& plan) { plan.set_fault(1); }),
      plan_lie("NoQps", [](Plan& plan) { plan.set_qp_count(0); }),
      plan_lie("AllQpsThereAre", [](Plan& plan) { plan.set_qp_count(kHuge); }),
      plan_lie("AMillionQps", [](Plan& plan) { plan.set_qp_count(1 << 20); }),
      plan_lie("NoQpsInACq", [](Plan& plan) { plan.set_qps_per_cq(0); }),
      plan_lie("NoSendQueue", [](Plan& plan) { plan.set_send_depth(0); }),
      plan_lie("AnEndlessSendQueue", [](Plan& plan) { plan.set_send_depth(kHuge); }),
      plan_lie("AnEndlessReceiveQueue",
               [](Plan& plan) {
                 plan.set_operation(0);
                 plan.set_receive_depth(kHuge);
               }),
      plan_lie("ManyDeepQueues",
               [](Plan& plan) {
                 plan.set_qp_count(1 << 16);
                 plan.set_send_depth(1 << 16);
                 plan.set_mr_bytes(std::uint64_t{1} << 40);
               }),
  };
}

std::vector<ClientLie> messages_and_modes() {
  return {
      plan_lie("NoSizes", [](Plan& plan) { plan.clear_sizes(); }),
      plan_lie("MillionsOfSizes",
               [](Plan& plan) {
                 for (int i = 0; i < 4 << 20; ++i) plan.add_sizes(1);
               }),
      plan_lie("AMessageOfFourGigabytes", [](Plan& plan) { plan.set_sizes(0, kHuge); }),
      plan_lie("PiecesWithoutEnd", [](Plan& plan) { plan.set_sge_count(kHuge); }),
      plan_lie("PiecesBeyondTheMessage",
               [](Plan& plan) {
                 plan.set_sge_count(4);
                 for (int i = 0; i < 4; ++i) plan.add_elements(1 << 30);
               }),
      plan_lie("MorePiecesThanElements",
               [](Plan& plan) {
                 for (int i = 0; i < 100000; ++i) plan.add_elements(0);
               }),
      plan_lie("NoMtu", [](Plan& plan) { plan.set_mtu_bytes(0); }),
      plan_lie("AllInline", [](Plan& plan) { plan.set_inline_bytes(kHuge); }),
      plan_lie("NeverSignalled", [](Plan& plan) { plan.set_signal_every(kHuge); }),
      plan_lie("ListsLongerThanTheQueue", [](Plan& plan) { plan.set_post_batch(kHuge); }),
      plan_lie("ReceivesLongerThanTheQueue", [](Plan& plan) { plan.set_receive_batch(kHuge); }),
      plan_lie("NoRegions", [](Plan& plan) { plan.set_mr_count(0); }),
      plan_lie("AllRegionsThereAre", [](Plan& plan) { plan.set_mr_count(kHuge); }),
      plan_lie("ARegionOfAllMemory",
               [](Plan& plan) { plan.set_mr_bytes(std::numeric_limits<std::uint64_t>::max()); }),
      plan_lie("ARegionOfNoBytes", [](Plan& plan) { plan.set_mr_bytes(0); }),
      plan_lie("ThreadsWithoutEnd", [](Plan& plan) { plan.set_thread_count(kHuge); }),
      plan_lie("NoThreads", [](Plan& plan) { plan.set_thread_count(0); }),
      plan_lie("ARateThatIsNoNumber",
               [](Plan& plan) { plan.set_offered_rate(std::numeric_limits<double>::quiet_NaN()); }),
      plan_lie("ARateBelowZero", [](Plan& plan) { plan.set_offered_rate(-1); }),
      plan_lie("ATinyRate", [](Plan& plan) { plan.set_offered_rate(1e-300); }),
      plan_lie("APatienceForEver", [](Plan& plan) { plan.set_stall_limit_ms(~std::uint64_t{0}); }),
      plan_lie("NoPatience", [](Plan& plan) { plan.set_stall_limit_ms(0); }),
      plan_lie("LatencyByManyThreads",
               [](Plan& plan) {
                 plan.set_mode(1);
                 plan.set_thread_count(3);
               }),
      plan_lie("LatencyOfNoBytes",
               [](Plan& plan) {
                 plan.set_mode(1);
                 plan.set_direction(0);
                 plan.set_sizes(0, 0);
               }),
      plan_lie("XrcWithoutItsQueues", [](Plan& plan) { plan.set_shared_receive_queue(false); }),
      plan_lie("ATransportTheDeviceLacks", [](Plan& plan) { plan.set_transport(2); }),
  };
}

std::vector<ClientLie> ends() {
  using Endpoint = wire::Endpoint;
  return {
      endpoint_lie("KeysWithoutAddresses", [](Endpoint& end) { end.clear_target_addresses(); }),
      endpoint_lie("AddressesWithoutKeys", [](Endpoint& end) { end.clear_target_keys(); }),
      endpoint_lie("NoRegionsAtAll",
                   [](Endpoint& end) {
                     end.clear_target_addresses();
                     end.clear_target_keys();
                   }),
      endpoint_lie("AMillionRegions",
                   [](Endpoint& end) {
                     for (int i = 0; i < 1 << 20; ++i) {
                       end.add_target_addresses(1);
                       end.add_target_keys(1);
                     }
                   }),
      endpoint_lie("FewerQps", [](Endpoint& end) { end.mutable_qp_numbers()->Truncate(3); }),
      endpoint_lie("MoreQps", [](Endpoint& end) { end.add_qp_numbers(7); }),
      endpoint_lie("FewerTargets", [](Endpoint& end) { end.mutable_xrc_targets()->Truncate(1); }),
      endpoint_lie("QueuesThatNobodyNeeds", [](Endpoint& end) { end.add_srq_numbers(7); }),
      endpoint_lie("WindowsThatNobodyNeeds", [](Endpoint& end) { end.add_window_keys(7); }),
      endpoint_lie("AShortGid", [](Endpoint& end) { end.set_gid("abc"); }),
      endpoint_lie("ALongGid", [](Endpoint& end) { end.set_gid(std::string(1 << 20, 'x')); }),
      endpoint_lie("ALidBeyondItsBits", [](Endpoint& end) { end.set_lid(kHuge); }),
      endpoint_lie("QpsThatAreNowhere",
                   [](Endpoint& end) {
                     for (auto& number : *end.mutable_qp_numbers()) number = kHuge;
                     end.set_psn(kHuge);
                   }),
  };
}

std::vector<ClientLie> calls() {
  const auto lasts = [](std::uint64_t ns) {
    return [ns](RogueClient& rogue) {
      rogue.open();
      rogue.connect([&](wire::ConnectRequest& request) { request.set_duration_ns(ns); });
    };
  };
  return {
      open_lie("ProtocolOfTheFuture",
               [](wire::OpenRequest& request) { request.set_protocol(1000); }),
      open_lie("NegativeProtocol", [](wire::OpenRequest& request) { request.set_protocol(-1); }),
      open_lie("NoPlan", [](wire::OpenRequest& request) { request.clear_plan(); }),
      open_lie("ALeaseForEver",
               [](wire::OpenRequest& request) { request.set_lease_seconds(~std::uint64_t{0}); }),
      open_lie("ALeaseOfNothing", [](wire::OpenRequest& request) { request.set_lease_seconds(0); }),
      {"ARunOfThirtyYears", lasts(1'000'000'000'000'000'000)},
      {"ARunBackwards", lasts(~std::uint64_t{0})},
      {"ALeaseThatIsHeldToItsEnd",
       [](RogueClient& rogue) {
         rogue.open([](wire::OpenRequest& request) { request.set_lease_seconds(2); });
       }},
      {"ARunWhoseOtherEndIsSilent",
       [](RogueClient& rogue) {
         rogue.open([](wire::OpenRequest& request) { request.set_lease_seconds(3); });
         rogue.connect(
             [](wire::ConnectRequest& request) { request.set_duration_ns(3'000'000'000); });
       }},
      {"OpenedTwice",
       [](RogueClient& rogue) {
         rogue.open();
         grpc::ClientContext context;
         set_deadline(context);
         wire::OpenReply reply;
         (void)rogue.stub().Open(&context, {}, &reply);
       }},
      {"ConnectedTwice",
       [](RogueClient& rogue) {
         rogue.open();
         rogue.connect();
         rogue.connect();
         rogue.finish();
       }},
      {"ConnectedWithoutOpen", [](RogueClient& rogue) { rogue.connect(); }},
      {"FinishedWithoutConnect",
       [](RogueClient& rogue) {
         rogue.open();
         rogue.finish();
       }},
      {"FinishedTwice",
       [](RogueClient& rogue) {
         rogue.open();
         rogue.connect();
         rogue.finish();
         rogue.finish();
       }},
  };
}

std::vector<ClientLie> last_words_and_crowds() {
  return {
      finish_lie("NoLanes",
                 [](wire::FinishRequest& request) { request.clear_completed_by_lane(); }),
      finish_lie("AMillionLanes",
                 [](wire::FinishRequest& request) {
                   for (int i = 0; i < 1 << 20; ++i) request.add_completed_by_lane(1);
                 }),
      finish_lie("MoreMessagesThanTime",
                 [](wire::FinishRequest& request) {
                   for (auto& lane : *request.mutable_completed_by_lane()) lane = ~std::uint64_t{0};
                 }),
      finish_lie("AFailureThatWasNone",
                 [](wire::FinishRequest& request) { request.set_failed(true); }),
      {"SessionsOfOthers",
       [](RogueClient& rogue) {
         for (std::uint64_t session = 0; session < 200; ++session) rogue.abandon(session);
       }},
      {"AMessageBeyondTheLimit",
       [](RogueClient& rogue) {
         rogue.connect([](wire::ConnectRequest& request) {
           request.mutable_endpoint()->set_gid(std::string(70 << 20, 'x'));
         });
       }},
      {"ManyCallsAtOnce",
       [](RogueClient& rogue) {
         std::vector<std::thread> callers;
         for (int i = 0; i < 60; ++i) {
           callers.emplace_back([&rogue] {
             for (int turn = 0; turn < 10; ++turn) rogue.abandon(1);
           });
         }
         for (std::thread& caller : callers) caller.join();
       }},
      {"CallsThatAreCutOff",
       [](RogueClient& rogue) {
         for (int i = 0; i < 20; ++i) {
           grpc::ClientContext context;
           context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(i));
           wire::OpenRequest request;
           request.set_protocol(verbs::kPeerProtocol);
           request.set_lease_seconds(2);
           wire::OpenReply reply;
           (void)rogue.stub().Open(&context, request, &reply);
         }
       }},
  };
}

}  // namespace

const std::vector<ClientLie>& client_lies() {
  static const std::vector<ClientLie> all = [] {
    std::vector<ClientLie> lies;
    for (auto& part : {bytes_on_the_wire(), words_and_queues(), messages_and_modes(), ends(),
                       calls(), last_words_and_crowds()}) {
      lies.insert(lies.end(), part.begin(), part.end());
    }
    return lies;
  }();
  return all;
}

}  // namespace greynic::agent
