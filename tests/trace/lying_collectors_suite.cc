/// Collectors that tell an agent of traces what no collector of ours tells. The agent is greynic itself, and needs
/// what tracing needs.

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "child_process.h"
#include "sized.h"
#include "trace_hosts.grpc.pb.h"

namespace greynic::trace_hosts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProtocol = 1;
constexpr int kPackets = 200;
constexpr std::chrono::seconds kPatience = sized(std::chrono::seconds(5), std::chrono::seconds(30));

std::string rules_of(const std::string& rule) {
  return R"({"version": 1, "rules": [)" + rule + "]}";
}

std::string many(int count, const std::function<std::string(int)>& make) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + make(i);
  return text;
}

/// A collector that says what it is told to say.
class Caller {
 public:
  explicit Caller(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = wire::TraceAgent::NewStub(channel_);
  }

  grpc::Status set(const wire::SetRulesRequest& request, wire::SetRulesReply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return stub_->SetRules(&context, request, &reply);
  }
  grpc::Status set(const std::string& text, wire::SetRulesReply& reply) {
    wire::SetRulesRequest request;
    request.set_protocol(kProtocol);
    request.set_text(text);
    request.set_source("rules.json");
    return set(request, reply);
  }
  grpc::Status set(const std::string& text) {
    wire::SetRulesReply reply;
    return set(text, reply);
  }
  grpc::Status read(std::uint64_t behind, wire::ReadReply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    wire::ReadRequest request;
    request.set_behind(behind);
    return stub_->Read(&context, request, &reply);
  }
  /// Any bytes to any method.
  void say(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool good = false;
    (void)queue.Next(&tag, &good);
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::TraceAgent::Stub> stub_;
};

/// Packets on loopback, to a port that nobody else uses.
class Traffic {
 public:
  Traffic() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(bind(reader_, reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(getsockname(reader_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    EXPECT_EQ(connect(writer_, reinterpret_cast<sockaddr*>(&at), bytes), 0);
    port_ = ntohs(at.sin_port);
  }
  ~Traffic() {
    close(reader_);
    close(writer_);
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  [[nodiscard]] std::string rules(const std::string& name) const {
    return rules_of(R"({"name": ")" + name +
                    R"(", "match": {"protocol": "udp", "destination_port": )" +
                    std::to_string(port_) + R"(}, "actions": ["count"]})");
  }
  void flow() const {
    for (int i = 0; i < kPackets; ++i) {
      char byte = 0;
      EXPECT_EQ(send(writer_, &byte, 1, 0), 1);
      EXPECT_EQ(recv(reader_, &byte, 1, 0), 1);
    }
  }

 private:
  int reader_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int writer_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
};

/// A packet of a flow of its own to each of 10,000 ports of loopback.
void send_to_every_port() {
  const int writer = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(0x7f000002);
  for (int port = 20'000; port < 30'000; ++port) {
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    (void)sendto(writer, "", 0, 0, reinterpret_cast<sockaddr*>(&at), sizeof at);
  }
  close(writer);
}

struct Lie {
  std::string name;
  std::function<void(Caller&)> tell;
};

class Lies {
 public:
  void of_texts();
  void of_rules();
  void of_messages();
  void of_methods();
  [[nodiscard]] const std::vector<Lie>& all() const { return made_; }

 private:
  void text(const std::string& name, const std::string& text) {
    made_.push_back({name, [text](Caller& caller) { (void)caller.set(text); }});
  }
  void rule(const std::string& rule) { text("rule " + rule, rules_of(rule)); }
  void request(const std::string& name, const std::function<void(wire::SetRulesRequest&)>& lie) {
    made_.push_back({name, [lie](Caller& caller) {
                       wire::SetRulesRequest request;
                       request.set_protocol(kProtocol);
                       request.set_text(rules_of("{}"));
                       lie(request);
                       wire::SetRulesReply reply;
                       (void)caller.set(request, reply);
                     }});
  }
  std::vector<Lie> made_;
};

void Lies::of_texts() {
  text("nothing", "");
  text("no JSON", "hops, please");
  text("a list", "[]");
  text("a million brackets", std::string(1 << 20, '['));
  text("60 MB of brackets", std::string(60'000'000, '['));
  text("60 MB of spaces", std::string(60'000'000, ' ') + rules_of("{}"));
  text("a name of 50 MB", rules_of(R"({"name": ")" + std::string(50'000'000, 'n') + R"("})"));
  text("a version of tomorrow", R"({"version": 2, "rules": [{}]})");
  text("no rules", R"({"version": 1, "rules": []})");
  text("33 rules", rules_of(many(33, [](int) { return std::string("{}"); })));
  text("100,000 rules", rules_of(many(100'000, [](int) { return std::string("{}"); })));
  text("32 rules that take all", rules_of(many(32, [](int) {
         return std::string(R"({"sample": 1, "actions": ["histogram", "loss", "stamp"]})");
       })));
  text("rules of one name", rules_of(R"({"name": "a"}, {"name": "a"})"));
  text("a budget of nothing", R"({"version": 1, "cpu_budget_percent": 0, "rules": [{}]})");
  text("a budget below nothing", R"({"version": 1, "cpu_budget_percent": -1e300, "rules": [{}]})");
  text("a budget without end", R"({"version": 1, "cpu_budget_percent": 1e308, "rules": [{}]})");
  text("all is slow", R"({"version": 1, "slow": "0ns", "rules": [{}]})");
  text("an age is slow", R"({"version": 1, "slow": "999999999999h", "rules": [{}]})");
  text("a window that never opens",
       R"({"version": 1, "window": {"after": "99999999h"}, "rules": [{}]})");
  text("a window of nothing", R"({"version": 1, "window": {"for": "0s"}, "rules": [{}]})");
  text("an engine of steam", R"({"version": 1, "engine": "steam", "rules": [{}]})");
  text("in band without a path", R"({"version": 1, "engine": "in_band", "rules": [{}]})");
  text(
      "in band from loopback to loopback",
      R"({"version": 1, "engine": "in_band", "rules": [{"points": [{"device": "lo"}, {"device": "lo"}]}]})");
}

void Lies::of_rules() {
  rule(R"({"match": {"port": 65536}})");
  rule(R"({"match": {"port": "9-1"}})");
  rule(R"({"match": {"port": -1}})");
  rule(R"({"match": {"address": "300.1.1.1"}})");
  rule(R"({"match": {"address": "10.0.0.0/33"}})");
  rule(R"({"match": {"source": "::/0", "destination": "0.0.0.0/0"}})");
  rule(R"({"match": {"protocol": 256}})");
  rule(R"({"match": {"vni": 4294967296}})");
  rule(R"({"match": {"queue_pair": -5}})");
  rule(R"({"match": {"container": "../../proc/1/root"}})");
  rule(R"({"match": {"container": ""}})");
  rule(R"({"match": {"container": "\u0000"}})");
  rule(R"({"points": [{"device": "%s%n%s%n"}]})");
  rule(R"({"points": [{"device": "../../etc/passwd"}]})");
  rule(R"({"points": [{"device": "lo", "direction": "sideways"}]})");
  rule(R"({"points": [{"hook": "commit_creds"}]})");
  rule(R"({"points": [{"hook": "net_dev_queue\u0000"}]})");
  rule(R"({"sample": 0})");
  rule(R"({"sample": 18446744073709551616})");
  rule(R"({"most_bytes": -1})");
  rule(R"({"name": "\u001b[2J\u202e"})");
  rule(R"({"actions": []})");
  rule(R"({"actions": [")" + std::string(100'000, 'a') + R"("]})");
  rule(R"({"points": [)" + many(20'000, [](int) { return std::string(R"({"device": "*"})"); }) +
       "]}");
  rule(R"({"points": [{"device": ")" + std::string(5'000, '*') + R"(x"}]})");
}

void Lies::of_messages() {
  for (const int protocol : {0, -1, 2, INT32_MAX, INT32_MIN}) {
    request("protocol " + std::to_string(protocol), [=](auto& r) { r.set_protocol(protocol); });
  }
  request("a source of 60 MB", [](auto& r) {
    r.set_source(std::string(60'000'000, 's'));
    r.set_text("[");
  });
  request("a source that steers a terminal", [](auto& r) {
    r.set_source("\x1b]0;x\x07\r\n2026 agent: all is well");
    r.set_text("[");
  });
  request("a message of 65 MiB", [](auto& r) { r.set_text(std::string(65 << 20, ' ')); });
  for (const std::uint64_t behind :
       {UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 63, std::uint64_t{0}}) {
    made_.push_back({"what is behind " + std::to_string(behind), [behind](Caller& caller) {
                       wire::ReadReply reply;
                       EXPECT_TRUE(caller.read(behind, reply).ok());
                     }});
  }
  made_.push_back({"more flows than there is room for", [](Caller& caller) {
                     (void)caller.set(
                         rules_of(R"({"name": "crowd", "match": {"protocol": "udp"}})"));
                     send_to_every_port();
                   }});
  made_.push_back({"names of rules without end", [](Caller& caller) {
                     for (int i = 0; i < 10; ++i) {
                       (void)caller.set(rules_of(many(32, [i](int j) {
                         return R"({"name": ")" + std::to_string(100 * i + j) + R"("})";
                       })));
                     }
                   }});
  made_.push_back({"other rules a hundred times", [](Caller& caller) {
                     for (int i = 0; i < 100; ++i) {
                       (void)caller.set(rules_of(i % 2 == 0 ? "{}" : R"({"actions": ["count"]})"));
                     }
                   }});
}

void Lies::of_methods() {
  for (const char* const method : {"SetRules", "Clock", "Read", "Reboot", ""}) {
    for (const std::string& bytes :
         {std::string(), std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
          std::string("\x12\xff\xff\xff\xff\x0f"), std::string(1 << 20, '\x0b')}) {
      made_.push_back({std::string("bytes to ") + method, [=](Caller& caller) {
                         caller.say(std::string("/greynic.trace_hosts.wire.TraceAgent/") + method,
                                    bytes);
                       }});
    }
  }
}

std::vector<Lie> lies() {
  Lies made;
  made.of_texts();
  made.of_rules();
  made.of_messages();
  made.of_methods();
  return made.all();
}

class LyingTraceCollectors : public testing::Test {
 protected:
  void SetUp() override {
    if (agent.address().empty())
      GTEST_SKIP() << "greynic trace agent does not start here: run as root, on Linux with BTF";
  }

  /// The packets that an honest collector is told of, by a rule that nobody else has; -1 when it is not served.
  int traced_by_the_honest() {
    Caller honest(agent.address());
    const std::string name = "honest" + std::to_string(calls_++);
    wire::SetRulesReply reply;
    const grpc::Status set = honest.set(traffic.rules(name), reply);
    if (!set.ok() || !reply.fault().message().empty()) {
      ADD_FAILURE() << set.error_message() << reply.fault().message();
      return -1;
    }
    traffic.flow();
    std::uint64_t told = 0;
    for (const auto end = Clock::now() + kPatience; told < kPackets && Clock::now() < end;) {
      wire::ReadReply read;
      if (!honest.read(0, read).ok()) return -1;
      told = 0;
      for (const auto& hop : read.hops()) told += hop.rule() == name ? hop.packets() : 0;
    }
    return static_cast<int>(told);
  }

  ChildProcess agent{GREYNIC_BINARY, {"greynic", "trace", "agent", "--listen", "127.0.0.1:0"}};
  Traffic traffic;

 private:
  int calls_ = 0;
};

// Claim:  whatever a collector says, the next one is served, and its packets are counted; memory stays
//         bounded; SIGTERM ends the agent soon.
// Oracle: packets that the test sends; the kernel's record of the agent's memory.
TEST_F(LyingTraceCollectors, CostOthersNothing) {
  ASSERT_EQ(traced_by_the_honest(), kPackets);
  const std::size_t before = agent.peak_bytes();
  ASSERT_GE(lies().size(), 50U);
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.name.substr(0, 200));
    Caller rogue(agent.address());
    lie.tell(rogue);
    EXPECT_EQ(traced_by_the_honest(), kPackets);
  }
  EXPECT_LT(agent.peak_bytes(), before + (sized<std::size_t>(1024, 4096) << 20));
  int status = 0;
  EXPECT_LT(agent.end(status), kPatience);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Claim:  SIGTERM ends the agent soon although collectors give it rules without end.
TEST_F(LyingTraceCollectors, DoNotDelayItsEnd) {
  std::atomic<bool> over = false;
  std::vector<std::thread> crowd;
  for (int i = 0; i < 8; ++i) {
    crowd.emplace_back([&] {
      Caller rogue(agent.address());
      while (!over) {
        (void)rogue.set(rules_of(many(32, [](int) { return std::string(R"({"sample": 1})"); })));
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  int status = 0;
  EXPECT_LT(agent.end(status), kPatience);
  over = true;
  for (std::thread& one : crowd) one.join();
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

}  // namespace
}  // namespace greynic::trace_hosts
