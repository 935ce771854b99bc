#pragma once

/// Brokers and their applications as processes, in a lab of their own.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "greynic/broker_service/service.h"
#include "program.h"

namespace greynic::broker {

/// A process whose output is kept; it ends with this object.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      (void)join();
    }
    close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits for these words in the output; false when it ends, or says nothing for a minute.
  bool says(const std::string& words) {
    while (text_.find(words) == std::string::npos) {
      if (!read_more(60000)) return false;
    }
    return true;
  }
  /// Its exit code; 128 and the signal when one ended it.
  int join() {
    while (read_more(120000)) {
    }
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    pid_ = -1;
    return code_;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  bool read_more(int patience_ms) {
    pollfd entry{output_, POLLIN, 0};
    char part[4096];
    if (poll(&entry, 1, patience_ms) <= 0) return false;
    const ssize_t got = read(output_, part, sizeof part);
    if (got > 0) text_.append(part, static_cast<std::size_t>(got));
    return got > 0;
  }
  pid_t pid_ = -1;
  int output_ = -1;
  int code_ = -1;
  std::string text_;
};

/// A lab with a folder for its sockets.
class Lab {
 public:
  [[nodiscard]] std::string socket(const std::string& name) const {
    return folder_ / (name + ".sock");
  }
  [[nodiscard]] const integration::Folder& folder() const { return folder_; }
  /// A broker on a host of this lab. `address` is where others reach it, once it serves.
  struct Broker {
    std::unique_ptr<Process> process;
    std::string socket, address;
    [[nodiscard]] nlohmann::json status() const {
      const auto text = ask_status(socket);
      return text ? nlohmann::json::parse(*text) : nlohmann::json{{"connections", -1}};
    }
    /// The broker's own process, not that of `lab-run`.
    [[nodiscard]] pid_t pid() const {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::snprintf(name.sun_path, sizeof name.sun_path, "%s", socket.c_str());
      const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
      ucred who{};
      socklen_t bytes = sizeof who;
      if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
          getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
        who.pid = -1;
      }
      close(fd);
      return who.pid;
    }
  };
  Broker start(const std::string& name, int host, const std::vector<std::string>& more = {},
               const std::string& listen = "127.0.0.1:0") const {
    Broker broker;
    broker.socket = socket(name);
    std::vector<std::string> words = {
        GREYNIC_BINARY, "lab-run",      "--session", session_,   "--host", std::to_string(host),
        "--",           GREYNIC_BINARY, "broker",    "--device", "twin0",  "--socket",
        broker.socket,  "--listen",     listen};
    words.insert(words.end(), more.begin(), more.end());
    broker.process = std::make_unique<Process>(words);
    EXPECT_TRUE(broker.process->says(broker.socket + "\n127.0.0.1:")) << broker.process->text();
    EXPECT_TRUE(broker.process->says("\n"));
    const std::string& text = broker.process->text();
    const std::size_t at = text.find("127.0.0.1:", text.find(broker.socket));
    if (at != std::string::npos) broker.address = text.substr(at, text.find('\n', at) - at);
    return broker;
  }

 private:
  static std::string fresh_session() {
    static int count = 0;
    return "brokers" + std::to_string(getpid()) + "_" + std::to_string(count++);
  }
  integration::Folder folder_;
  std::string session_ = fresh_session();
};

inline std::unique_ptr<Process> echo_at(const std::string& socket, const std::string& port) {
  auto echo =
      std::make_unique<Process>(std::vector<std::string>{BROKER_PROGRAM, "echo", socket, port});
  EXPECT_TRUE(echo->says("listening")) << echo->text();
  return echo;
}

/// Until the claim holds, at most half a minute.
template <typename Claim>
bool eventually(Claim claim) {
  for (int i = 0; i < 600; ++i) {
    if (claim()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace greynic::broker
