#pragma once

/// An agent and a collector of this machine, with a folder and a log of their own.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "greynic/monitor/agent.h"
#include "greynic/monitor/collector.h"
#include "greynic/series/query.h"

namespace greynic::monitor {

using std::chrono::milliseconds;

class HostFixture : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_monitor_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    setenv("GREYNIC_ZERO_SOCKET", socket().c_str(), 1);
  }
  void TearDown() override {
    stop_collector();
    stop_agent();
    std::filesystem::remove_all(folder_);
  }
  std::string socket() const { return folder_ + "/agent"; }
  std::string store() const { return folder_ + "/store"; }

  void start_agent(AgentOptions options = {}) {
    options.socket = socket();
    options.linger = milliseconds(500);
    options.beat = milliseconds(20);
    options.tell = [this](std::string_view line) { note(line); };
    auto agent = Agent::start(options);
    ASSERT_TRUE(agent) << agent.error().message;
    agent_ = std::move(*agent);
    agent_stop_ = false;
    agent_thread_ = std::thread([this] { agent_->serve(agent_stop_); });
  }
  void stop_agent() {
    agent_stop_ = true;
    if (agent_thread_.joinable()) agent_thread_.join();
    agent_.reset();
  }
  void start_collector(std::vector<HostSpec> hosts, CollectorOptions options = {}) {
    options.store = store();
    options.commit = milliseconds(20);
    options.tell = [this](std::string_view line) { note(line); };
    auto collector = Collector::open(std::move(hosts), options);
    ASSERT_TRUE(collector) << collector.error().message;
    collector_ = std::move(*collector);
    collector_stop_ = false;
    collector_thread_ = std::thread([this] { ASSERT_TRUE(collector_->run(collector_stop_)); });
  }
  void stop_collector() {
    collector_stop_ = true;
    if (collector_thread_.joinable()) collector_thread_.join();
    collector_.reset();
  }
  HostSpec by_agent(const std::string& name) const {
    HostSpec spec;
    spec.name = name;
    spec.agent = socket();
    spec.interval = milliseconds(5);
    return spec;
  }
  /// The latest values by "host/series{labels}".
  std::map<std::string, double> latest() const {
    std::map<std::string, double> values;
    collector_->latest([&](const series::Group& group, std::int64_t, auto words) {
      std::size_t column = 0;
      for (const series::Field& field : group.fields) {
        values[fmt::format("{}/{}{{{}}}", group.host, field.name, field.labels)] =
            series::value_of(field, words[column]);
        column += field.count;
      }
    });
    return values;
  }
  /// False after a minute, however long each look takes.
  static bool wait_for(const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!what()) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(10000);
    }
    return true;
  }
  bool was_told(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return told_.find(part) != std::string::npos;
  }
  /// In a line about that host.
  bool was_told_of(const std::string& host, const std::string& part) {
    std::istringstream lines(told());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(host + ": ") && line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::string told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  void note(std::string_view line) {
    const std::lock_guard lock(mutex_);
    told_ += std::string(line) + "\n";
  }

  std::string folder_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Collector> collector_;
  std::atomic<bool> agent_stop_{false}, collector_stop_{false};
  std::thread agent_thread_, collector_thread_;
  std::mutex mutex_;
  std::string told_;
};

}  // namespace greynic::monitor
