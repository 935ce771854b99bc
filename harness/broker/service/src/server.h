#pragma once

/// The serving thread of a broker: one loop over the device, the rings of applications, the links
/// to other brokers, and descriptors. server.cc holds the loop and what the core says; what comes
/// from outside is in server_doors.cc, and what it tells of itself in status.cc.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "application.h"
#include "attachments.h"
#include "greynic/broker/core.h"
#include "greynic/broker_service/service.h"
#include "greynic/core/histogram.h"
#include "greynic/daemon/door.h"
#include "peers.h"
#include "verbs_device.h"

namespace greynic::broker {

class Server final : public Service, private Owner {
 public:
  explicit Server(ServiceOptions options) : options_(std::move(options)) {}
  ~Server() override;
  Result<void> open();
  const std::string& address() const override { return address_; }
  Result<void> serve(const std::atomic<bool>& stop) override;

 private:
  using Clock = std::chrono::steady_clock;
  /// This broker as a peer of its own: connections between applications of one host go out by one
  /// and come in by the other.
  static constexpr PeerId kSelfOut = 1, kSelfIn = 2;
  /// In place of a descriptor: the doorbell of any application.
  static constexpr int kDoorbell = -1;

  // The core's words.
  void on_incoming(AppId app, std::uint16_t port, VirtualQpn connection) override;
  void on_open(AppId app, VirtualQpn connection) override;
  void on_received(AppId app, VirtualQpn connection, std::uint64_t total) override;
  void on_sent(AppId app, VirtualQpn connection, std::uint64_t total) override;
  void on_transferred(AppId, VirtualQpn, std::uint64_t) override {}
  void on_finished(AppId app, VirtualQpn connection) override;
  void on_closed(AppId app, VirtualQpn connection, int error) override;
  void on_returned(AppId app, std::uint32_t region) override;
  void on_detached(AppId app) override;
  void call_peer(PeerId peer, std::vector<std::byte> bytes) override;
  void on_peer_broken(PeerId peer, const char* reason) override;

  // The loop.
  std::size_t turn(Clock::time_point now);
  void settle();
  void deliver();
  std::size_t take_requests();
  void take_async();
  void sleep();
  void look(int timeout_ms);
  void tick(Clock::time_point now);
  void measure_load();

  // Doors.
  [[nodiscard]] Result<void> check_options() const;
  Result<void> open_doors();
  void watch(int fd, bool also_write);
  void on_ready(int fd);
  void attach(const Visitor& who, const local::Attach& wish, int memory);
  void read_packets(AppId app, int socket);
  void cut_off(AppId app, const std::string& why);
  void connect(AppId app, const local::Request& request);
  [[nodiscard]] std::optional<BrokerAddress> target_of(const local::Request& request) const;
  [[nodiscard]] bool is_self(const BrokerAddress& address) const;
  void take_handed();
  Application* find(AppId app);

  // Status.
  [[nodiscard]] std::string status() const;
  [[nodiscard]] std::string decisions() const;

  ServiceOptions options_;
  std::string address_;
  BrokerAddress listens_;
  std::unique_ptr<VerbsDevice> device_;
  std::unique_ptr<Core> core_;
  std::unordered_map<uid_t, Holdings> holdings_;
  std::map<AppId, std::unique_ptr<Application>> applications_;
  std::unordered_map<int, AppId> by_socket_;
  std::vector<AppId> touched_;  ///< to whom something is to be told
  std::vector<AppId> told_;     ///< of deliver(): its memory is used again
  std::vector<AppId> detached_;
  std::vector<std::pair<AppId, std::uint32_t>> returned_;  ///< lent memory that is free
  std::vector<std::pair<AppId, VirtualQpn>> unwanted_;     ///< came in beyond their user's quota
  std::unique_ptr<Attachments> attachments_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<daemon::Door> door_;
  std::mutex handed_mutex_;
  std::vector<int> handed_;  ///< sockets from the door's thread
  int handed_event_ = -1;
  std::multimap<BrokerAddress, std::pair<AppId, local::Request>> waiting_;
  std::vector<std::pair<PeerId, std::vector<std::byte>>> calls_;
  std::vector<std::pair<PeerId, std::string>> broken_;
  std::vector<PeerId> lost_;
  std::vector<Completion> completions_;
  int epoll_ = -1;
  Clock::time_point began_, next_tick_;
  std::uint64_t busy_before_ = 0, all_before_ = 0;
  /// Connects: when this turn's were asked for and when they became known here, and how long it
  /// then took until they were posted, or lay in the ring of their application.
  std::vector<Clock::time_point> asked_, heard_;
  LatencyHistogram to_post_, to_tell_;
  Load load_;
  local::Costs costs_;
  std::uint64_t turns_ = 0, sleeps_ = 0, taken_ = 0, polled_ = 0, cut_offs_ = 0, refusals_ = 0,
                attached_ = 0;
  std::string last_cut_off_;
};

}  // namespace greynic::broker
