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
    auto links = remote::links_to(hosts, queue_pairs_);
    ASSERT_TRUE(links) << links.error().message;
    options.remote_links = std::move(*links);
    start_collector(std::move(hosts), options);
  }
  /// Until the host is down with this in its reason.
  bool goes_down(std::size_t host, const std::string& part) {
    return wait_for([&] {
      const auto state = collector_->hosts()[host];
      return !state.up && state.reason.find(part) != std::string::npos;
    });
  }

  std::string device_;  ///< RDMA device of the door
  std::size_t queue_pairs_ = remote::kQueuePairs;
  std::unique_ptr<remote::Door> door_;
};

inline const std::string kRequests = "/server_requests{port=\"80\"}";

}  // namespace greynic::monitor
