#pragma once

/// A real InfluxDB of this test, in a folder of its own at a free port of loopback; for tests of whoever sends
/// to one. GREYNIC_INFLUXD names the program.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "greynic/os/program.h"

namespace greynic::testing_influx {

inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), length) != 0) return 0;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  close(socket);
  return ntohs(address.sin_port);
}

class InfluxDatabase {
 public:
  explicit InfluxDatabase(std::string program) : program_(std::move(program)) {
    std::string pattern = std::filesystem::temp_directory_path() / "greynic-influx-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~InfluxDatabase() {
    stop();
    std::filesystem::remove_all(folder_);
  }
  InfluxDatabase(const InfluxDatabase&) = delete;
  InfluxDatabase& operator=(const InfluxDatabase&) = delete;

  /// "http://127.0.0.1:41234/lab"
  [[nodiscard]] std::string url() const { return server() + "/lab"; }

  /// Returns when it answers; false when it does not within 30 s.
  bool start() {
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int null = open("/dev/null", O_RDWR);
      dup2(null, 1);
      dup2(null, 2);
      const auto set = [](const char* name, const std::string& value) {
        setenv(name, value.c_str(), 1);
      };
      set("INFLUXDB_HTTP_BIND_ADDRESS", fmt::format("127.0.0.1:{}", port_));
      set("INFLUXDB_BIND_ADDRESS", fmt::format("127.0.0.1:{}", rpc_port_));
      set("INFLUXDB_META_DIR", folder_ + "/meta");
      set("INFLUXDB_DATA_DIR", folder_ + "/data");
      set("INFLUXDB_DATA_WAL_DIR", folder_ + "/wal");
      set("INFLUXDB_MONITOR_STORE_ENABLED", "false");
      execl(program_.c_str(), program_.c_str(), nullptr);
      _exit(127);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until) {
      if (os::run({.words = {"curl", "-sf", server() + "/ping"}})) {
        query("CREATE DATABASE lab");
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  void stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  /// Its answer in CSV; empty when it gave none.
  [[nodiscard]] std::string ask(const std::string& question) const {
    return os::run(
               {.words = {"curl", "-s", "-H", "Accept: application/csv", "-G", server() + "/query",
                          "--data-urlencode", "db=lab", "--data-urlencode", "q=" + question}})
        .value_or("");
  }

 private:
  [[nodiscard]] std::string server() const { return fmt::format("http://127.0.0.1:{}", port_); }
  void query(const std::string& text) const {
    (void)os::run(
        {.words = {"curl", "-s", "-XPOST", server() + "/query", "--data-urlencode", "q=" + text}});
  }

  std::string program_;
  std::string folder_;
  int port_ = free_port();
  int rpc_port_ = free_port();
  pid_t pid_ = -1;
};

}  // namespace greynic::testing_influx
