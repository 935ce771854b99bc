#pragma once

/// A daemon in a process of its own, so that it can be asked to end. Its first line is its address.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace greynic {

class ChildProcess {
 public:
  ChildProcess(const std::string& program, std::vector<std::string> words) {
    int asks[2];
    int answers[2];
    EXPECT_EQ(pipe2(asks, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
    // Not fork: gRPC's own fork handlers may wait for its threads for ever.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, asks[0], 0);
    posix_spawn_file_actions_adddup2(&actions, answers[1], 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(asks[0]);
    close(answers[1]);
    asks_ = asks[1];
    answers_ = fdopen(answers[0], "r");
    address_ = line();
  }
  ~ChildProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(asks_);
    std::fclose(answers_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Its answer to a line, without the end of the line; empty when it is gone.
  std::string answer_to(const std::string& ask) {
    const std::string bytes = ask + "\n";
    if (write(asks_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return "";
    return line();
  }

  /// The most memory that it ever had, by the kernel's record.
  [[nodiscard]] std::size_t peak_bytes() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
    }
    ADD_FAILURE() << "process " << pid_ << " has gone";
    return 0;
  }

  /// Sends SIGTERM: how long the end took, and the wait status.
  std::chrono::milliseconds end(int& status) {
    using Clock = std::chrono::steady_clock;
    // Far longer than it may take, so that a hang fails here and not by ctest's limit.
    constexpr std::chrono::seconds kPatience{60};
    const auto begin = Clock::now();
    kill(pid_, SIGTERM);
    while (waitpid(pid_, &status, WNOHANG) == 0 && Clock::now() - begin < kPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (Clock::now() - begin < kPatience) pid_ = -1;
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  }

 private:
  std::string line() {
    char text[8192] = "";
    if (std::fgets(text, sizeof text, answers_) == nullptr) return "";
    return {text, std::strcspn(text, "\n")};
  }

  pid_t pid_ = -1;
  int asks_ = -1;
  FILE* answers_ = nullptr;
  std::string address_;
};

}  // namespace greynic
