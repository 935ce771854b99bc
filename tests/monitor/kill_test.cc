#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "host_fixture.h"
#include "program.h"

namespace greynic::monitor {
namespace {

/// Agents in processes of their own. All are there before the first thread is; each waits for its
/// turn.
class KilledAgent : public HostFixture {
 protected:
  void make_agents(int count) {
    for (int i = 0; i < count; ++i) {
      int turn[2];
      ASSERT_EQ(pipe2(turn, O_CLOEXEC), 0);
      const pid_t agent = fork();
      if (agent == 0) {
        close(turn[1]);
        serve(turn[0]);
      }
      close(turn[0]);
      agents_.emplace_back(agent, turn[1]);
    }
  }
  void start(std::size_t which) { ASSERT_EQ(write(agents_.at(which).second, "!", 1), 1); }
  void end(std::size_t which) {
    const auto [agent, turn] = agents_.at(which);
    kill(agent, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(agent, &status, 0), agent);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it had ended by itself";
    close(turn);
  }

 private:
  [[noreturn]] void serve(int turn) {
    char byte = 0;
    AgentOptions options;
    options.socket = socket();
    options.beat = milliseconds(20);
    if (read(turn, &byte, 1) != 1) _exit(0);
    auto agent = Agent::start(options);
    if (!agent) _exit(1);
    (*agent)->serve(agent_stop_);
    _exit(0);
  }

  std::vector<std::pair<pid_t, int>> agents_;
};

// Claim:  an agent that is killed (SIGKILL) leaves nothing that is in the way of the next one, which
//         takes the same programs again; each gap is marked, and nothing goes back.
// Method: twenty times, each time at another moment of the looks.
TEST_F(KilledAgent, IsReplacedByTheNext) {
  constexpr std::size_t kKills = 20;
  make_agents(kKills + 1);
  start(0);
  start_collector({by_agent("h")});
  zero::Program program({ZERO_WATCHED_C, "600"});
  ASSERT_EQ(program.line(), "counting");
  const std::string requests = "h/server_requests{port=\"80\"}";
  ASSERT_TRUE(wait_for([&] { return latest()[requests] > 5; })) << told();
  for (std::size_t i = 0; i < kKills && !HasFailure(); ++i) {
    const double before = latest()[requests];
    end(i);
    ASSERT_TRUE(wait_for([&] { return !collector_->hosts()[0].up; }));
    start(i + 1);
    ASSERT_TRUE(wait_for([&] {
      return collector_->hosts()[0].up && latest()[requests] > before + 5;
    })) << i
        << ": " << told();
    usleep(static_cast<useconds_t>(i * 1700));
  }
  end(kKills);
  ASSERT_TRUE(wait_for([&] { return !collector_->hosts()[0].up; }));
  stop_collector();
  const auto gaps = series::gaps_of(store(), {});
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->size(), kKills + 1);
  std::int64_t last_ns = 0;
  std::uint64_t last = 0;
  ASSERT_TRUE(
      series::visit_points(store(), {.metric = "server_requests"}, [&](const series::Point& point) {
        if (point.field->labels != "port=\"80\"") return;
        EXPECT_GT(point.time_ns, last_ns);
        EXPECT_GE(point.value, last);
        last_ns = point.time_ns;
        last = point.value;
      }));
  EXPECT_GT(last, 20U * 5U);
}

}  // namespace
}  // namespace greynic::monitor
