#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "greynic/zero/region.h"
#include "greynic_zero.h"
#include "host_fixture.h"
#include "link.h"
#include "program.h"

namespace greynic::monitor {
namespace {

using zero::Program;

struct Pair {
  std::uint64_t a, b;
};
const zero_field kFields[] = {{"a", ZERO_U64, ZERO_COUNTER, 0, 1, 0, "", "", ""},
                              {"b", ZERO_U64, ZERO_COUNTER, 8, 1, 0, "", "", ""}};
const zero_schema kPair = {"pair", "", kFields, 2, sizeof(Pair), ZERO_PLAIN};

class Host : public HostFixture {
 protected:
  /// Hands an arena over, as a program does; gives the agent's answer.
  zero_link_message hand_over(int link, int file, std::uint64_t incarnation, zero_class of) {
    zero_link_message message = make_message(ZERO_LINK_ARENA, "test");
    message.incarnation = incarnation;
    message.metric_class = of;
    EXPECT_TRUE(send_message(link, message, file));
    std::optional<Received> answer;
    bool gone = false;
    wait_for([&] { return (answer = receive_message(link, gone)) || gone; });
    EXPECT_TRUE(answer);
    return answer ? answer->message : zero_link_message{};
  }
};

// Claim: a program's metrics reach the store; what it had last stays when it is killed.
TEST_F(Host, IsReadFromItsProgramsToTheStore) {
  start_agent();
  start_collector({by_agent("h")});
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  const std::string requests = "h/server_requests{port=\"80\"}";
  ASSERT_TRUE(wait_for([&] { return latest()[requests] > 20; })) << told();
  program.end();
  const bool forgotten = wait_for([&] { return !latest().contains(requests); });
  EXPECT_TRUE(forgotten) << "an ended program is shown no more";
  stop_collector();
  const auto found = series::summarize(store(), {.metric = "server_requests"});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->front().labels, "port=\"80\"");
  EXPECT_GT(found->front().samples, 3U);
  EXPECT_GT(found->front().greatest, 20);
  // Functions of milliseconds are there with their last values.
  const auto calls = series::summarize(store(), {.metric = "call_bytes"});
  ASSERT_TRUE(calls);
  ASSERT_FALSE(calls->empty());
  for (const series::Summary& call : *calls) EXPECT_EQ(call.last, "4096") << call.labels;
}

// Claim:  two processes of one name on a host are two programs, whose counters never mix; who is
//         started anew goes on with the series of who ended, and a collector that is started anew
//         gives each its own again.
// Oracle: counters of one process never fall; one counts from 0 when it starts.
TEST_F(Host, KeepsProcessesOfOneNameApart) {
  const auto programs = [&] {
    std::set<std::string> names;
    collector_->latest([&](const series::Group& group, std::int64_t, auto) {
      if (group.fields[0].labels == "port=\"80\"") names.insert(group.source);
    });
    return names;
  };
  start_agent();
  start_collector({by_agent("h")});
  auto first = std::make_unique<Program>(std::vector<std::string>{ZERO_WATCHED_C, "600"});
  ASSERT_EQ(first->line(), "counting");
  ASSERT_TRUE(wait_for([&] { return programs().size() == 1; }));
  const std::string name = *programs().begin();
  const std::set<std::string> both{name, name + "/2"};
  Program second({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(second.line(), "counting");
  ASSERT_TRUE(wait_for([&] { return programs() == both; })) << told();
  usleep(300000);
  stop_collector();
  start_collector({by_agent("h")});
  ASSERT_TRUE(wait_for([&] { return programs() == both; })) << told();
  usleep(100000);
  first->end();
  ASSERT_TRUE(wait_for([&] { return programs() == std::set{name + "/2"}; })) << told();
  const Program third({ZERO_WATCHED_C, "600"});
  ASSERT_TRUE(wait_for([&] { return programs() == both; })) << told();
  usleep(100000);
  stop_collector();
  std::map<std::string, std::uint64_t> last, falls;
  const auto seen =
      series::visit_points(store(), {.metric = "server_requests"}, [&](const series::Point& point) {
        if (point.field->labels != "port=\"80\"") return;
        std::uint64_t& before = last[point.group->source];
        if (point.value < before) ++falls[point.group->source];
        before = point.value;
      });
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(last.size(), 2U);
  EXPECT_EQ(falls[name], 1U) << "the first one ended, and the third counts from 0";
  EXPECT_EQ(falls[name + "/2"], 0U);
}

// Claim:  a host behind a wire that stays away is tried less and less often, as each try costs both
//         ends a handshake; hundreds of them would keep the collector busy.
// Oracle: tries at 0, 0.5, 1.5 and 3.5 s, and not each half second.
TEST_F(Host, ThatStaysAwayIsTriedLessAndLessOften) {
  std::atomic<int> tries{0};
  CollectorOptions options;
  options.remote_links = [&](const HostSpec&) -> Result<std::unique_ptr<HostLink>> {
    ++tries;
    return fail(ErrorCode::kIo, "nobody is there");
  };
  HostSpec away;
  away.name = "away";
  away.remote = "away:1";
  away.interval = milliseconds(10);
  start_collector({away}, options);
  ASSERT_TRUE(wait_for([&] { return tries > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  stop_collector();
  EXPECT_GE(tries, 2);
  EXPECT_LE(tries, 4);
}

// Claim: an agent that is gone leaves a gap with its reason; with the next one all goes on, without
//        a call of the program.
TEST_F(Host, GoesOnWithTheNextAgent) {
  start_agent();
  start_collector({by_agent("h")});
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  ASSERT_TRUE(wait_for([&] { return latest().contains("h/server_requests{port=\"80\"}"); }));
  stop_agent();
  ASSERT_TRUE(wait_for([&] { return !collector_->hosts()[0].up; }));
  start_agent();
  const double before = latest()["h/server_requests{port=\"80\"}"];
  ASSERT_TRUE(wait_for([&] {
    return collector_->hosts()[0].up && latest()["h/server_requests{port=\"80\"}"] > before + 5;
  })) << told();
  stop_collector();
  const auto gaps = series::gaps_of(store(), {});
  ASSERT_TRUE(gaps);
  ASSERT_EQ(gaps->size(), 1U);
  EXPECT_NE((*gaps)[0].reason.find("agent"), std::string::npos) << (*gaps)[0].reason;
  EXPECT_GT((*gaps)[0].end_ns, (*gaps)[0].begin_ns);
}

// Claim:  an agent takes away what a dead one left, and no socket that another program serves at, of
//         whatever type and however busy.
TEST_F(Host, LeavesTheSocketOfAnotherProgram) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket();
  std::copy(path.begin(), path.end(), address.sun_path);
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    const int served = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    ASSERT_EQ(::bind(served, name, sizeof address), 0);
    if (type != SOCK_DGRAM) ASSERT_EQ(::listen(served, 0), 0);
    const int waiting = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(waiting, name, sizeof address), 0);  // there is no room for another
    AgentOptions options;
    options.socket = path;
    const auto agent = Agent::start(options);
    ASSERT_FALSE(agent) << type;
    EXPECT_EQ(agent.error().code, type == SOCK_SEQPACKET ? ErrorCode::kIo : ErrorCode::kBadInput);
    EXPECT_TRUE(std::filesystem::is_socket(path)) << type;
    ::close(waiting);
    ::close(served);
    if (type == SOCK_SEQPACKET) EXPECT_TRUE(Agent::start(options)) << "a dead agent's is taken";
    std::filesystem::remove(path);
  }
}

// Claim: an arena that is not sealed, not what it says, too large, or comes twice is refused in
//        words, and costs nobody else anything.
TEST_F(Host, TakesNoArenaThatCouldHurt) {
  AgentOptions small;
  small.bytes_of_user = 300 << 10;
  start_agent(small);
  const int link = connect_to(socket());
  ASSERT_GE(link, 0);
  const auto says = [&](const zero_link_message& answer, const char* part) {
    EXPECT_NE(answer.error, 0U) << part;
    EXPECT_NE(std::string(answer.text).find(part), std::string::npos) << answer.text;
  };
  const int open = memfd_create("open", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(open, 4096), 0);
  says(hand_over(link, open, 1, ZERO_TIDAL), "F_SEAL_SHRINK");
  ASSERT_EQ(fcntl(open, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  says(hand_over(link, open, 1, ZERO_TIDAL), "no arena");
  says(hand_over(link, -1, 1, ZERO_TIDAL), "memfd");
  const auto make = [](std::uint64_t bytes) {
    const zero_arena_options options = {ZERO_TIDAL, bytes, 20, 0, "t"};
    return zero_arena_create(&options);
  };
  zero_arena* const good = make(128 << 10);
  const std::uint64_t number =
      static_cast<const zero_header*>(zero_arena_memory(good))->incarnation;
  says(hand_over(link, zero_arena_file(good), number + 1, ZERO_TIDAL), "not the one");
  says(hand_over(link, zero_arena_file(good), number, ZERO_SYSTEM), "not the one");
  EXPECT_EQ(hand_over(link, zero_arena_file(good), number, ZERO_TIDAL).error, 0U);
  says(hand_over(link, zero_arena_file(good), number, ZERO_TIDAL), "already");
  zero_arena* const large = make(256 << 10);
  says(
      hand_over(link, zero_arena_file(large),
                static_cast<const zero_header*>(zero_arena_memory(large))->incarnation, ZERO_TIDAL),
      "quota");
  // Whoever speaks otherwise is cut.
  const int rude = connect_to(socket());
  ASSERT_EQ(write(rude, "hello", 5), 5);
  char byte = 0;
  EXPECT_TRUE(wait_for([&] { return read(rude, &byte, 1) == 0; }));
  EXPECT_EQ(Agent::start({.socket = socket()}).error().code, ErrorCode::kIo) << "a second agent";
  close(rude);
  close(link);
  close(open);
  zero_arena_destroy(good);
  zero_arena_destroy(large);
}

// Claim: 5,000 connections that say nothing, all of one user, keep no program of that user out, and
//        no connection that has handed something over is cut for them.
TEST_F(Host, ServesAmongThousandsWhoIdle) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 12000) {
    GTEST_SKIP() << "the hard limit of open files is below 12000; raise it (ulimit -Hn)";
  }
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  start_agent();
  const zero_arena_options options = {ZERO_TIDAL, 128 << 10, 20, 0, "t"};
  zero_arena* const arena = zero_arena_create(&options);
  const auto number = static_cast<const zero_header*>(zero_arena_memory(arena))->incarnation;
  const int first = connect_to(socket());
  EXPECT_EQ(hand_over(first, zero_arena_file(arena), number, ZERO_TIDAL).error, 0U);
  std::vector<int> idle;
  while (idle.size() < 5000) {
    const int one = connect_to(socket());
    if (one < 0) usleep(1000);  // its queue is full for the moment
    if (one >= 0) idle.push_back(one);
  }
  zero_arena* const late = zero_arena_create(&options);
  const auto late_number = static_cast<const zero_header*>(zero_arena_memory(late))->incarnation;
  const int last = connect_to(socket());
  ASSERT_GE(last, 0);
  EXPECT_EQ(hand_over(last, zero_arena_file(late), late_number, ZERO_TIDAL).error, 0U);
  char byte = 0;
  EXPECT_EQ(recv(first, &byte, 1, MSG_DONTWAIT), -1) << "who has handed over is cut";
  for (const int one : idle) close(one);
  close(first);
  close(last);
  zero_arena_destroy(arena);
  zero_arena_destroy(late);
}

// Claim: who floods an agent, or a collector in an agent's place, keeps nobody out, and both end
//        when they are told to.
TEST_F(Host, ThatIsFloodedServesOthersAndEnds) {
  start_agent();
  std::atomic<bool> over{false};
  std::vector<std::thread> flooding;
  for (int i = 0; i < 3; ++i) {
    flooding.emplace_back([&, i] {
      const zero_link_message message = make_message(i == 0 ? ZERO_LINK_COLLECT : ZERO_LINK_ARENA);
      int link = -1;
      while (!over) {
        if (link < 0) link = connect_to(socket());
        if (link >= 0 && !send_message(link, message) && errno != EAGAIN)
          close(std::exchange(link, -1));
      }
      if (link >= 0) close(link);
    });
  }
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  start_collector({by_agent("h")});
  EXPECT_TRUE(wait_for([&] { return latest()["h/server_requests{port=\"80\"}"] > 5; })) << told();
  stop_agent();
  over = true;
  for (std::thread& one : flooding) one.join();
  stop_collector();

  // In the agent's place: shows the same nothing for ever.
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listening, 8), 0);
  over = false;
  std::thread rogue([&] {
    const int file = memfd_create("nothing", MFD_ALLOW_SEALING);
    zero_link_message message = make_message(ZERO_LINK_SHOWN, "nothing");
    int link = -1;
    while (!over) {
      if (link < 0) link = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      ++message.incarnation;
      if (!send_message(link, message, file) && errno != EAGAIN) close(std::exchange(link, -1));
    }
    close(link);
    close(file);
  });
  HostSpec process = by_agent("process");
  process.agent.clear();
  process.pid = program.pid();
  start_collector({by_agent("rogue"), process});
  EXPECT_TRUE(wait_for([&] { return was_told("more arenas"); })) << told();
  EXPECT_TRUE(wait_for([&] { return latest()["process/server_requests{port=\"80\"}"] > 5; }));
  over = true;
  shutdown(listening, SHUT_RDWR);
  rogue.join();
  close(listening);
  stop_collector();
}

// Claim: an arena whose table turns hostile is left alone with the reason, and a host that is not
//        there is marked; all others are read as before.
TEST_F(Host, ThatIsHostileHurtsNoOther) {
  start_agent();
  const zero_arena_options options = {ZERO_PERSISTENT, 128 << 10, 20, 0, "evil"};
  zero_arena* const arena = zero_arena_create(&options);
  for (int i = 0; i < 2; ++i) {
    void* const row = zero_arena_malloc(arena, sizeof(Pair));
    ASSERT_EQ(zero_arena_publish(arena, row, &kPair, fmt::format("n=\"{}\"", i).c_str()), 0);
  }
  auto& header = *static_cast<zero_header*>(const_cast<void*>(zero_arena_memory(arena)));
  const int link = connect_to(socket());
  ASSERT_EQ(hand_over(link, zero_arena_file(arena), header.incarnation, ZERO_PERSISTENT).error, 0U);
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  HostSpec absent = by_agent("absent");
  absent.agent = folder_ + "/nobody";
  HostSpec file = by_agent("file");
  file.agent.clear();
  file.region = folder_ + "/region";
  auto writer = zero::RegionWriter::create(file.region, {{"g", {{"x", ""}}}});
  ASSERT_TRUE(writer);
  writer->publish(0, 1, std::vector<double>{4.5});
  HostSpec process = by_agent("process");
  process.agent.clear();
  process.pid = program.pid();
  start_collector({by_agent("h"), absent, file, process});
  ASSERT_TRUE(wait_for([&] {
    auto values = latest();
    return values.contains("h/pair_a{n=\"1\"}") && values["file/g_x{}"] == 4.5 &&
           values["process/server_requests{port=\"80\"}"] > 3;
  })) << told();
  auto* const rows =
      reinterpret_cast<zero_row*>(reinterpret_cast<char*>(&header) + header.rows_offset);
  rows[1].offset = rows[0].offset;
  header.epoch += 2;
  ASSERT_TRUE(wait_for([&] { return was_told("overlap"); }));
  const double before = latest()["h/server_requests{port=\"80\"}"];
  EXPECT_TRUE(wait_for([&] { return latest()["h/server_requests{port=\"80\"}"] > before + 5; }));
  for (const auto& state : collector_->hosts()) {
    EXPECT_EQ(state.up, state.name != "absent") << state.name;
    if (state.name == "absent") EXPECT_NE(state.reason.find("no agent"), std::string::npos);
  }
  close(link);
  zero_arena_destroy(arena);
}

/// A host behind a wire that fills each READ with bytes of its own choice.
class GarbageLink final : public HostLink {
 public:
  using Fill = std::function<std::uint64_t()>;
  explicit GarbageLink(Fill fill) : fill_(std::move(fill)) {}
  Result<std::unique_ptr<zero::Source>> directory() override {
    return std::make_unique<Bytes>(fill_);
  }
  Result<std::unique_ptr<zero::Source>> arena(std::uint64_t) override { return directory(); }

 private:
  class Bytes final : public zero::Source {
   public:
    explicit Bytes(Fill fill) : fill_(std::move(fill)) {}
    Result<void> read(std::span<const zero::Piece> pieces) override {
      for (const zero::Piece& piece : pieces) {
        for (std::size_t at = 0; at < piece.into.size(); at += 8) {
          const std::uint64_t word = fill_();
          std::memcpy(&piece.into[at], &word, 8);
        }
      }
      return {};
    }

   private:
    Fill fill_;
  };
  Fill fill_;
};

// Claim: hosts that answer garbage are marked with the reason, again and again; all others are read
//        as before.
TEST_F(Host, ThatAnswersGarbageIsMarked) {
  start_agent();
  Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  CollectorOptions options;
  options.remote_links = [](const HostSpec& spec) -> Result<std::unique_ptr<HostLink>> {
    GarbageLink::Fill fill = [] { return 0; };
    if (spec.name == "ones") fill = [] { return UINT64_MAX; };
    if (spec.name == "chance") {
      fill = [chance = std::make_shared<std::mt19937_64>(7)] { return (*chance)(); };
    }
    return std::make_unique<GarbageLink>(fill);
  };
  std::vector<HostSpec> hosts;
  for (const char* name : {"zeros", "ones", "chance"}) {
    hosts.push_back(by_agent(name));
    hosts.back().agent = "";
    hosts.back().remote = "far:1";
  }
  hosts.push_back(by_agent("good"));
  start_collector(hosts, options);
  const std::string requests = "good/server_requests{port=\"80\"}";
  ASSERT_TRUE(wait_for([&] {
    const auto states = collector_->hosts();
    return latest()[requests] > 5 && std::count_if(states.begin(), states.end(), [](const auto& s) {
                                       return s.reason.find("not") != std::string::npos &&
                                              s.reason != "not read yet" && !s.up;
                                     }) == 3;
  })) << told()
      << collector_->hosts()[0].reason;
  const double before = latest()[requests];
  EXPECT_TRUE(wait_for([&] { return latest()[requests] > before + 5; }));
  stop_collector();
  const auto gaps = series::gaps_of(store(), {});
  ASSERT_TRUE(gaps);
  std::set<std::string> marked;
  for (const series::Gap& gap : *gaps) marked.insert(gap.host);
  EXPECT_EQ(marked, (std::set<std::string>{"zeros", "ones", "chance"}));
}

// Claim: who has no right to read a host is told so at once, with the remedy, and not by gaps.
TEST_F(Host, ThatMayNotBeReadIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user's process; run as root";
  start_agent();
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(socket().c_str(), 0600), 0);
  auto writer = zero::RegionWriter::create(folder_ + "/region", {{"g", {{"x", ""}}}});
  ASSERT_TRUE(writer);
  ASSERT_EQ(::chmod((folder_ + "/region").c_str(), 0600), 0);
  HostSpec file = by_agent("file"), process = by_agent("process"), absent = by_agent("absent");
  file.agent = process.agent = "";
  file.region = folder_ + "/region";
  process.pid = ::getpid();
  absent.agent = folder_ + "/nobody";
  const auto told_to = [&](uid_t user, const HostSpec& host) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setuid(user) != 0) ::_exit(1);
      const auto opened = Collector::open({host}, {});
      const std::string said = opened ? "" : opened.error().message;
      const bool is_right = opened || opened.error().code == ErrorCode::kMissing;
      (void)!::write(ends[1], said.data(), said.size());
      ::_exit(is_right ? 0 : 1);
    }
    ::close(ends[1]);
    std::string said(1000, 0);
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), 1000))));
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << host.name;
    ::close(ends[0]);
    return said;
  };
  constexpr uid_t kNobody = 65534;
  for (const HostSpec& host : {by_agent("agent"), file, process}) {
    EXPECT_EQ(told_to(0, host), "");
    EXPECT_NE(told_to(kNobody, host).find(host.name), std::string::npos);
    EXPECT_NE(told_to(kNobody, host).find("run as"), std::string::npos) << told_to(kNobody, host);
  }
  EXPECT_EQ(told_to(kNobody, absent), "") << "is waited for";
}

}  // namespace
}  // namespace greynic::monitor
