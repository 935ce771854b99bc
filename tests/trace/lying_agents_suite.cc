/// Agents that tell a collector of traces what no agent of ours tells, beside one that is honest.

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "greynic/trace/tracer.h"
#include "greynic/trace_hosts/collector.h"
#include "sized.h"
#include "trace_hosts.grpc.pb.h"

namespace greynic::trace_hosts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kRules =
    R"({"version": 1, "rules": [{"name": "all", "actions": ["histogram"]}]})";
constexpr std::uint64_t kPackets = 1000;

struct Lie {
  std::string name;
  std::function<void(wire::ReadReply&)> read = {};
  std::function<void(wire::ClockReply&)> clock = {};
  std::function<void(wire::SetRulesReply&)> rules = {};
  grpc::StatusCode status = grpc::StatusCode::OK;
  std::chrono::milliseconds late{0};
};

class FakeAgent final : public wire::TraceAgent::Service {
 public:
  FakeAgent() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeAgent() override { server_->Shutdown(std::chrono::system_clock::now()); }
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void tell(const Lie& lie) {
    const std::lock_guard lock(mutex_);
    lie_ = lie;
  }

  grpc::Status SetRules(grpc::ServerContext* context, const wire::SetRulesRequest* request,
                        wire::SetRulesReply* reply) override {
    reply->set_protocol(request->protocol());
    return said(*context, [&](const Lie& lie) {
      if (lie.rules) lie.rules(*reply);
    });
  }
  grpc::Status Clock(grpc::ServerContext* context, const wire::ClockRequest*,
                     wire::ClockReply* reply) override {
    reply->set_now_ns(Clock_ns());
    return said(*context, [&](const Lie& lie) {
      if (lie.clock) lie.clock(*reply);
    });
  }
  grpc::Status Read(grpc::ServerContext* context, const wire::ReadRequest* request,
                    wire::ReadReply* reply) override {
    reply->set_session(7);
    reply->set_first_number(request->behind() + 1);
    wire::Hop& hop = *reply->add_hops();
    hop.set_flow("udp 10.0.0.1:1 > 10.0.0.2:2");
    hop.set_rule("all");
    hop.mutable_from()->set_label("web/eth0");
    hop.mutable_to()->set_label("db/eth0");
    hop.set_packets(kPackets);
    reply->mutable_summary()->set_events(2 * kPackets);
    return said(*context, [&](const Lie& lie) {
      if (lie.read) lie.read(*reply);
    });
  }

 private:
  static std::int64_t Clock_ns() {
    return std::chrono::nanoseconds(trace_hosts::Clock::now().time_since_epoch()).count();
  }

  grpc::Status said(const grpc::ServerContext& context,
                    const std::function<void(const Lie&)>& say) {
    Lie lie;
    {
      const std::lock_guard lock(mutex_);
      lie = lie_;
    }
    const auto then = trace_hosts::Clock::now() + lie.late;
    while (trace_hosts::Clock::now() < then && !context.IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    say(lie);
    return {lie.status, lie.status == grpc::StatusCode::OK ? "" : "a lie \x1b[2J of \n many lines"};
  }

  int port_ = 0;
  std::mutex mutex_;
  Lie lie_{.name = "none"};
  std::unique_ptr<grpc::Server> server_;
};

/// What both say of the hop of one of them; 0 when it is not there.
std::uint64_t packets_of(const Collector& collector, const std::string& host) {
  for (const trace::Hop& hop : collector.report().hops) {
    if (hop.from.label == host + ":web/eth0" && hop.to.label == host + ":db/eth0")
      return hop.packets;
  }
  return 0;
}

constexpr std::uint64_t kMost = UINT64_MAX;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Under the thread sanitizer each byte that gRPC hands on takes microseconds.
constexpr std::size_t kMegabyte = sized(std::size_t{1} << 20, std::size_t{1} << 14);
constexpr std::uint32_t kMany = sized(50'000U, 1'000U);

class Lies {
 public:
  void of_sessions_and_hops();
  void of_hops_in_numbers();
  void of_summaries();
  void of_events();
  void of_clocks();
  void of_rules();
  [[nodiscard]] const std::vector<Lie>& all() const { return made_; }

 private:
  void read(const char* name, std::function<void(wire::ReadReply&)> lie) {
    made_.push_back({.name = name, .read = std::move(lie)});
  }
  std::vector<Lie> made_;
};

void Lies::of_sessions_and_hops() {
  read("nothing at all", [](auto& r) { r.Clear(); });
  read("another session each time",
       [n = std::make_shared<std::uint64_t>(8)](auto& r) { r.set_session((*n)++); });
  read("no session", [](auto& r) { r.set_session(0); });
  read("a machine of a megabyte", [](auto& r) { r.set_machine(std::string(kMegabyte, 'm')); });
  read("counts without end", [](auto& r) {
    r.mutable_hops(0)->set_packets(kMost);
    r.mutable_hops(0)->set_lost(kMost);
    r.mutable_hops(0)->set_timed(kMost);
  });
  read("sums that are no numbers", [](auto& r) { r.mutable_hops(0)->set_sum_ns(std::nan("")); });
  read("sums without end", [](auto& r) {
    r.mutable_hops(0)->set_sum_ns(kInfinite);
    r.mutable_hops(0)->set_max_ns(kMost);
  });
  read("sums below zero", [](auto& r) { r.mutable_hops(0)->set_sum_ns(-1e300); });
  read("buckets without counts", [](auto& r) {
    for (int i = 0; i < 100; ++i) r.mutable_hops(0)->add_buckets(3);
  });
  read("counts without buckets", [](auto& r) {
    for (int i = 0; i < 100; ++i) r.mutable_hops(0)->add_counts(kMost);
  });
  read("buckets that are not there", [](auto& r) {
    for (std::uint32_t b : {1023U, 1024U, UINT32_MAX}) {
      r.mutable_hops(0)->add_buckets(b);
      r.mutable_hops(0)->add_counts(kMost);
    }
  });
  read("a bucket that overflows", [](auto& r) {
    for (int i = 0; i < 5; ++i) {
      r.mutable_hops(0)->add_buckets(1);
      r.mutable_hops(0)->add_counts(kMost);
    }
  });
}

void Lies::of_hops_in_numbers() {
  read("hops from nowhere to nowhere", [](auto& r) {
    r.mutable_hops(0)->clear_from();
    r.mutable_hops(0)->clear_to();
  });
  read("hops of other hosts",
       [](auto& r) { r.mutable_hops(0)->mutable_from()->set_label("honest:web/eth0"); });
  read("labels that steer a terminal",
       [](auto& r) { r.mutable_hops(0)->mutable_to()->set_label("\x1b]0;x\x07\r\n"); });
  read("labels of a megabyte",
       [](auto& r) { r.mutable_hops(0)->mutable_to()->set_label(std::string(kMegabyte, 'l')); });
  read("flows of a megabyte",
       [](auto& r) { r.mutable_hops(0)->set_flow(std::string(kMegabyte, 'f')); });
  read("tens of thousands of hops", [](auto& r) {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      auto* hop = r.add_hops();
      hop->set_flow(std::to_string(i));
      hop->mutable_from()->set_label("a");
    }
  });
  read("tens of thousands of reasons", [](auto& r) {
    for (std::uint32_t i = 0; i < kMany; ++i)
      (*r.mutable_hops(0)->mutable_lost_reasons())[std::to_string(i)] = kMost;
  });
}

void Lies::of_summaries() {
  read("beginnings without end", [](auto& r) {
    for (int i = 0; i < 1000; ++i) {
      auto* begin = r.add_begins();
      begin->set_packets(kMost);
      begin->mutable_point()->set_label("x");
    }
  });
  read("containers that used no numbers", [](auto& r) {
    auto* used = r.add_containers();
    used->set_cpu_seconds(std::nan(""));
    used->set_throttled_seconds(-kInfinite);
    used->set_memory_bytes(kMost);
  });
  read("a share of all processors a thousand times", [](auto& r) {
    r.mutable_summary()->set_cpu_share(1e308);
    r.mutable_summary()->set_event_ns(-1);
    r.mutable_summary()->set_one_in(0);
  });
  read("summaries without end", [](auto& r) {
    auto* all = r.mutable_summary();
    all->set_events(kMost);
    all->set_events_lost(kMost);
    all->set_journeys(kMost);
    all->set_inferred(kMost);
    all->set_folded(kMost);
  });
  read("an engine of a megabyte",
       [](auto& r) { r.mutable_summary()->set_engine(std::string(kMegabyte, 'e')); });
  read("no summary", [](auto& r) { r.clear_summary(); });
}

void Lies::of_events() {
  read("the number of the last event there can be", [](auto& r) {
    r.set_first_number(kMost);
    r.add_events();
    r.add_events();
  });
  read("events of before", [](auto& r) {
    r.set_first_number(0);
    r.add_events();
  });
  read("times of before time", [](auto& r) {
    auto* event = r.add_events();
    event->set_time_ns(INT64_MIN);
    event->set_identity(kMost);
    event->set_journey(kMost);
  });
  read("times when all has ended", [](auto& r) {
    for (int i = 0; i < 1000; ++i) {
      auto* event = r.add_events();
      event->set_time_ns(INT64_MAX);
      event->set_identity(static_cast<std::uint64_t>(i));
      event->mutable_point()->set_label("web/eth0");
    }
  });
  read("the same packet a thousand times", [](auto& r) {
    for (int i = 0; i < 1000; ++i) {
      auto* event = r.add_events();
      event->set_time_ns(1);
      event->set_identity(5);
      event->set_journey(3);
    }
  });
  read("a fault that is none", [](auto& r) { r.mutable_fault()->set_code(-1); });
  read("a fault of a megabyte", [](auto& r) {
    r.mutable_fault()->set_code(999);
    r.mutable_fault()->set_message(std::string(kMegabyte, '\x1b'));
  });
  if (!kSanitized) {
    read("an answer of 65 MiB", [](auto& r) { r.set_machine(std::string(65 << 20, 'm')); });
  }
}

void Lies::of_clocks() {
  for (const std::int64_t now : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    made_.push_back(
        {.name = "it is " + std::to_string(now), .clock = [now](auto& r) { r.set_now_ns(now); }});
  }
  made_.push_back({.name = "a clock that jumps", .clock = [n = std::make_shared<int>(0)](auto& r) {
                     r.set_now_ns(++*n % 2 == 0 ? 0 : INT64_MAX);
                   }});
  for (const auto& [before, behind] :
       {std::pair<std::uint64_t, std::uint64_t>{kMost, 0}, {0, kMost}, {5, 5}, {kMost, kMost}}) {
    made_.push_back(
        {.name = "counts of time", .clock = [before = before, behind = behind](auto& r) {
           r.set_count_before(before);
           r.set_count_behind(behind);
         }});
  }
  for (int code = 1; code <= 16; ++code) {
    made_.push_back(
        {.name = "status " + std::to_string(code), .status = static_cast<grpc::StatusCode>(code)});
  }
}

void Lies::of_rules() {
  // Rules are only sent again to an agent that was started anew.
  const auto anew = [](auto& r) {
    r.set_session(Clock::now().time_since_epoch().count() & 0xffffffff);
  };
  made_.push_back({.name = "rules that nobody gave", .read = anew, .rules = [](auto& r) {
                     r.add_left_out(UINT32_MAX);
                     r.add_left_out_why("\x1b[2J");
                     r.set_protocol(-1);
                   }});
  made_.push_back({.name = "rules without reasons", .read = anew, .rules = [](auto& r) {
                     for (std::uint32_t i = 0; i < 2 * kMany; ++i) r.add_left_out(i);
                   }});
  made_.push_back({.name = "a fault in rules", .read = anew, .rules = [](auto& r) {
                     r.mutable_fault()->set_code(1 << 30);
                   }});
}

std::vector<Lie> lies() {
  Lies made;
  made.of_sessions_and_hops();
  made.of_hops_in_numbers();
  made.of_summaries();
  made.of_events();
  made.of_clocks();
  made.of_rules();
  return made.all();
}

struct Two {
  FakeAgent honest, rogue;
  std::vector<std::string> told;
  std::unique_ptr<Collector> collector;
  Two() {
    auto made = Collector::start(
        {.certificates = "", .hosts = {{"rogue", rogue.address()}, {"honest", honest.address()}}},
        kRules, "rules", [this](std::string_view line) { told.emplace_back(line); });
    EXPECT_TRUE(made) << made.error().message;
    if (made) collector = std::move(*made);
  }
};

// Claim:  whatever an agent says, its collector goes on with others, what it tells fits in a line, and
//         what it prints stays small; once the agent is honest again, so is what is said of it.
// Oracle: what the honest one said.
TEST(LyingTraceAgents, CostOthersNothing) {
  Two two;
  ASSERT_NE(two.collector, nullptr);
  ASSERT_GE(lies().size(), 50U);
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.name);
    two.rogue.tell(lie);
    for (int i = 0; i < 2; ++i) two.collector->turn();
    EXPECT_EQ(packets_of(*two.collector, "honest"), kPackets);
    EXPECT_LT(trace::json_lines(two.collector->report()).size(), std::size_t{64} << 20);
    EXPECT_LT(trace::table_text(two.collector->report()).size(), std::size_t{64} << 20);
  }
  two.rogue.tell({.name = "none"});
  // gRPC waits before it calls again who was unreachable.
  const auto patience = Clock::now() + std::chrono::seconds(60);
  do {
    two.collector->turn();
  } while (packets_of(*two.collector, "rogue") != kPackets && Clock::now() < patience);
  EXPECT_EQ(packets_of(*two.collector, "rogue"), kPackets);
  for (const std::string& line : two.told) {
    EXPECT_LT(line.size(), 1000U);
    EXPECT_EQ(line.find_first_of("\x1b\n"), std::string::npos) << line;
  }
}

// Claim:  an agent that answers each call just in time holds its collector a few seconds once, and then
//         one a turn.
// Oracle: the time that nine such answers would take, twice.
TEST(LyingTraceAgents, ThatAreSlowHoldNobody) {
  constexpr std::chrono::seconds kLate{3};
  Two two;
  ASSERT_NE(two.collector, nullptr);
  two.rogue.tell({.name = "slow", .late = kLate});
  const auto begin = Clock::now();
  for (int i = 0; i < 2; ++i) two.collector->turn();
  EXPECT_LT(Clock::now() - begin, 9 * kLate);
  EXPECT_EQ(packets_of(*two.collector, "honest"), kPackets);
  two.rogue.tell({.name = "none"});
}

// Claim:  what is no agent is told as such, within its patience.
TEST(LyingTraceAgents, ThatSpeakSomethingElseAreRefused) {
  for (const std::string words :
       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhops", "", "\x16\x03\x01"}) {
    SCOPED_TRACE(words);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), bytes), 0);
    ASSERT_EQ(listen(listener, 16), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    std::vector<int> callers;
    std::thread speaks([&] {
      for (int caller = accept(listener, nullptr, nullptr); caller >= 0;
           caller = accept(listener, nullptr, nullptr)) {
        (void)send(caller, words.data(), words.size(), MSG_NOSIGNAL);
        callers.push_back(caller);
      }
    });
    const auto begin = Clock::now();
    const auto made =
        Collector::start({.certificates = "",
                          .hosts = {{"rogue", "127.0.0.1:" + std::to_string(ntohs(at.sin_port))}}},
                         kRules, "rules", [](std::string_view) {});
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
    ASSERT_FALSE(made);
    EXPECT_EQ(exit_code(made.error().code), 3) << made.error().message;
    shutdown(listener, SHUT_RDWR);
    speaks.join();
    for (const int caller : callers) close(caller);
    close(listener);
  }
}

}  // namespace
}  // namespace greynic::trace_hosts
