#include "rogue/child_agent.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

#include "fake_device/fake_rdma.h"
#include "greynic/agent/agent.h"
#include "greynic/daemon/ending.h"
#include "rogue/honest_caller.h"

namespace greynic::agent {

ChildAgent::ChildAgent(const std::string& certificates) {
  int asks[2];
  int answers[2];
  EXPECT_EQ(pipe2(asks, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
  // Not fork: gRPC's own fork handlers may wait for its threads for ever.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, asks[0], 0);
  posix_spawn_file_actions_adddup2(&actions, answers[1], 1);
  std::string name = "agent";
  std::string mode = "--serve";
  std::string directory = certificates;
  char* arguments[] = {name.data(), mode.data(), directory.data(), nullptr};
  EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(asks[0]);
  close(answers[1]);
  asks_ = asks[1];
  answers_ = fdopen(answers[0], "r");
  char line[256] = "";
  EXPECT_NE(fgets(line, sizeof line, answers_), nullptr);
  address_ = std::string(line, strcspn(line, "\n"));
}

ChildAgent::~ChildAgent() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(asks_);
  fclose(answers_);
}

bool ChildAgent::measures_at(const std::string& address, std::string& reason) {
  char line[8192] = "";
  const std::string ask = address + "\n";
  if (write(asks_, ask.data(), ask.size()) != static_cast<ssize_t>(ask.size()) ||
      fgets(line, sizeof line, answers_) == nullptr) {
    reason = "the agent is gone";
    return false;
  }
  reason = line;
  return reason.starts_with("measured");
}

std::size_t ChildAgent::peak_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  }
  ADD_FAILURE() << "process " << pid_ << " has gone";
  return 0;
}

std::chrono::milliseconds ChildAgent::end(int& status) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  kill(pid_, SIGTERM);
  // Far longer than it may take, so that a hang fails here and not by ctest's limit.
  while (waitpid(pid_, &status, WNOHANG) == 0 && Clock::now() - begin < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (Clock::now() - begin < std::chrono::seconds(60)) pid_ = -1;
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

int serve_as_child(const std::string& certificates) {
  const daemon::Ending ending("agent");
  verbs::fake_rdma() = {};
  auto agent = Agent::start({.listen = "127.0.0.1:0",
                             .certificates = certificates,
                             .device = verbs::kFakeDevice,
                             .longest_run = std::chrono::seconds(60)});
  if (!agent) {
    fmt::print(stderr, "{}\n", agent.error().message);
    return 1;
  }
  fmt::print("{}\n", (*agent)->address());
  std::fflush(stdout);
  std::thread([address = (*agent)->address(), certificates] {
    for (std::string line; std::getline(std::cin, line);) {
      const Observation seen = measured_by(line.empty() ? address : line, certificates);
      fmt::print("{}: {}\n", to_string(seen.outcome), seen.reason);
      std::fflush(stdout);
    }
    std::_Exit(0);  // who asks is gone, perhaps by a crash
  }).detach();
  (*agent)->serve(ending.asked());
  agent->reset();
  // The thread that waits for questions has no end of its own.
  std::_Exit(0);
}

}  // namespace greynic::agent
