#include <fmt/core.h>

#include <thread>

#include "greynic/verbs/counters.h"
#include "greynic/verbs/peer.h"
#include "greynic/verbs/peer_claims.h"

namespace greynic::verbs {
namespace {

class LocalPeer final : public Peer {
 public:
  LocalPeer(std::string device, int port, std::string gid_rule)
      : device_name_(std::move(device)), port_(port), gid_rule_(std::move(gid_rule)) {}
  ~LocalPeer() override { abandon(); }

  Result<EndpointDescription> open(const TrafficPlan& plan, std::chrono::seconds) override {
    abandon();
    if (auto good = check_plan(plan); !good) return pass_on(good);
    // Opened for each run: a device that was removed and added again is another device.
    auto device = Device::open(device_name_, port_);
    if (!device) return pass_on(device);
    device_ = std::make_unique<Device>(std::move(*device));
    TrafficPlan own = plan;
    own.gid_rule = gid_rule_;
    auto endpoint = Endpoint::create(
        *device_, own, {.requests = plan.both_ways(), .answers = true, .listens = true});
    if (!endpoint) return pass_on(endpoint);
    endpoint_ = std::make_unique<Endpoint>(std::move(*endpoint));
    return endpoint_->describe();
  }

  Result<void> connect(const EndpointDescription& requester,
                       std::chrono::nanoseconds duration) override {
    if (!endpoint_) return fail(ErrorCode::kIo, "connect before open");
    if (answerer_) return fail(ErrorCode::kIo, "connect, though it is connected");
    if (auto done = endpoint_->connect(requester); !done) return done;
    report_ = {};
    report_.counters_before = read_counters(device_->name(), device_->port());
    answerer_ = std::make_unique<Answerer>(*endpoint_);
    answerer_->start();
    if (endpoint_->plan().direction == Direction::kBidirectional) {
      stop_ = false;
      requester_ = std::thread(
          [this, duration] { report_.requests = run_requests(*endpoint_, duration, stop_); });
    }
    return {};
  }

  Result<PeerReport> finish(const RequestReport& requests) override {
    if (!answerer_) return fail(ErrorCode::kIo, "finish before connect");
    if (requests.failure) stop_ = true;
    if (requester_.joinable()) requester_.join();
    report_.answers = answerer_->finish(requests.completed_by_lane);
    report_.counters_after = read_counters(device_->name(), device_->port());
    PeerReport report = std::move(report_);
    abandon();
    return report;
  }

  void interrupt() override { stop_ = true; }

  void abandon() override {
    stop_ = true;
    if (requester_.joinable()) requester_.join();
    answerer_.reset();
    endpoint_.reset();
    device_.reset();
  }

  std::string name() const override { return device_name_ + " in this process"; }

 private:
  std::string device_name_;
  int port_;
  std::string gid_rule_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Answerer> answerer_;
  std::thread requester_;
  std::atomic<bool> stop_ = false;
  PeerReport report_;
};

}  // namespace

std::unique_ptr<Peer> local_peer(std::string device, int port, std::string gid_rule) {
  return std::make_unique<LocalPeer>(std::move(device), port, std::move(gid_rule));
}

}  // namespace greynic::verbs
