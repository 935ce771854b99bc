#pragma once

/// A host behind its door: a lab's certificates, and collectors that come over TCP.

#include "greynic/agent/agent.h"
#include "greynic/remote/remote.h"
#include "host_fixture.h"
#include "program.h"

namespace greynic::monitor {

using zero::Program;

class RemoteHost : public HostFixture {
 protected:
  void TearDown() override {
    stop_collector();
    door_.reset();
    HostFixture::TearDown();
  }
  std::string lab() const { return folder_ + "/lab"; }
  std::string of_client(const std::string& name) const { return lab() + "/" + name; }

  void make_lab(const std::vector<std::string>& clients) {
    const auto made = agent::create_certificates(lab(), {"localhost", "127.0.0.1"}, clients);
    ASSERT_TRUE(made) << made.error().message;
  }
  void open_door(const std::vector<std::string>& allowed = {},
                 const std::string& at = "127.0.0.1:0") {
    remote::DoorOptions options;
    options.socket = socket();
    options.listen = at;
    options.certificates = lab();
    options.device = device_;
    options.directory = agent_->directory();
    options.tell = [this](std::string_view line) { note(line); };
    for (const std::string& one : allowed) ASSERT_TRUE(remote::allow(one, options.allowed));
    auto door = remote::Door::open(options);
    ASSERT_TRUE(door) << door.error().message;
    door_ = std::move(*door);
  }
  HostSpec behind_door(const std::string& name, const std::string& certificates) const {
    HostSpec spec;
    spec.name = name;
    spec.remote = door_->address();
    spec.certificates = certificates;
    spec.interval = milliseconds(10);
    return spec;
  }
  void start_remote_collector(std::vector<HostSpec> hosts) {
    CollectorOptions options;
    auto links = remote::links_to(hosts, links_);
    ASSERT_TRUE(links) << links.error().message;
    options.remote_links = std::move(*links);
    start_collector(std::move(hosts), options);
  }
  /// A program is read through `far` and by the agent's socket, the agent ends and another comes, the
  /// program ends: both saw the same series. Gives what `far` saw, calls of milliseconds among it.
  std::vector<series::Summary> read_like_here(const HostSpec& far, const std::string& why_down);
  /// Until the host is down, and this was told as the reason. It is tried again all the time, so another
  /// reason may stand there before anybody looks.
  bool goes_down(std::size_t host, const std::string& part) {
    return wait_for([&] {
      const auto state = collector_->hosts()[host];
      return !state.up && was_told_of(state.name, part);
    });
  }

  std::string device_;  ///< RDMA device of the door
  /// Answers take long on a machine that is busy, or under a sanitizer.
  remote::LinkOptions links_{.patience = std::chrono::seconds(5)};
  std::unique_ptr<remote::Door> door_;
};

inline const std::string kRequests = "/server_requests{port=\"80\"}";

inline std::vector<series::Summary> RemoteHost::read_like_here(const HostSpec& far,
                                                               const std::string& why_down) {
  start_remote_collector({far, by_agent("near")});
  Program program({ZERO_WATCHED_C, "600"});
  EXPECT_EQ(program.line(), "counting");
  EXPECT_TRUE(wait_for([&] {
    auto values = latest();
    return values["far" + kRequests] > 20 && values["near" + kRequests] > 20;
  })) << told()
      << collector_->hosts()[0].reason;
  const std::string address = door_->address();
  door_.reset();
  EXPECT_TRUE(goes_down(0, why_down)) << collector_->hosts()[0].reason;
  stop_agent();
  start_agent();
  open_door({}, address);
  const double before = latest()["near" + kRequests];
  EXPECT_TRUE(wait_for([&] { return latest()["far" + kRequests] > before + 20; })) << told();
  program.end();
  EXPECT_TRUE(wait_for([&] { return !latest().contains("far" + kRequests); }));
  stop_collector();
  std::map<std::string, std::set<std::string>> series;
  auto found = series::summarize(store(), {});
  EXPECT_TRUE(found);
  if (!found) return {};
  for (const series::Summary& one : *found) {
    if (!one.name.starts_with("call_")) series[one.host].insert(one.name + one.labels);
  }
  EXPECT_FALSE(series["near"].empty());
  EXPECT_EQ(series["far"], series["near"]);
  std::erase_if(*found, [](const auto& one) { return one.host != "far"; });
  return std::move(*found);
}

}  // namespace greynic::monitor
