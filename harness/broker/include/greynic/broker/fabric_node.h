#pragma once

/// A broker on a host of the twin's fabric: the core over virtual RNICs, in virtual time. Thousands
/// of clients run in one thread, and what one does costs its host's thread virtual time.

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "greynic/broker/core.h"
#include "greynic/twin/fabric.h"

namespace greynic::broker {

/// What an application on the fabric is told, by the thread of its broker. It may call the core.
class FabricClient {
 public:
  virtual ~FabricClient() = default;
  virtual void on_incoming(std::uint16_t, VirtualQpn) {}
  virtual void on_open(VirtualQpn) {}
  virtual void on_received(VirtualQpn, std::uint64_t) {}
  virtual void on_sent(VirtualQpn, std::uint64_t) {}
  virtual void on_transferred(VirtualQpn, std::uint64_t) {}
  virtual void on_finished(VirtualQpn) {}
  virtual void on_closed(VirtualQpn, int) {}
  virtual void on_returned(std::uint32_t) {}
  virtual void on_detached() {}
};

struct FabricNodeOptions {
  CoreOptions core;
  std::uint32_t thread = 0;
  bool immediate = true;          ///< false: as if the RNIC had none, as iWARP
  twin::Time ring_ns = 50;        ///< of the broker's thread, for each request and each word back
  twin::Time call_ns = 20000;     ///< a word to another broker out of band takes so long
  twin::QpAttributes attributes;  ///< of its QPs: timers, MTU
};

/// A broker. Two of them meet once; the fabric must outlive both.
class FabricNode final : public Owner {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FabricNode>> create(twin::Fabric& fabric,
                                                                  twin::HostId host,
                                                                  const FabricNodeOptions& options);
  ~FabricNode() override;

  [[nodiscard]] static Result<void> meet(FabricNode& a, FabricNode& b);
  /// Its process ends: nothing of it answers any more. The other sides notice by meet's connection.
  void kill();

  [[nodiscard]] Result<AppId> attach(FabricClient& client, std::span<std::byte> segment);
  /// Runs `call` as the broker's thread; what it asks of the core is posted after it.
  void act(std::function<void(Core&)> call, twin::Time earliest = 0);
  [[nodiscard]] Core& core() { return *core_; }
  [[nodiscard]] twin::HostId host() const { return host_; }
  /// For tests: the QPs of its lanes, as long as they are not rebuilt.
  [[nodiscard]] const std::vector<QpNumber>& qps() const;
  /// Why a peer was given up; empty: none was.
  [[nodiscard]] const std::string& broken() const { return broken_; }

 private:
  class FabricDevice;
  FabricNode(twin::Fabric& fabric, twin::HostId host, const FabricNodeOptions& options);
  void on_incoming(AppId app, std::uint16_t port, VirtualQpn connection) override;
  void on_open(AppId app, VirtualQpn connection) override;
  void on_received(AppId app, VirtualQpn connection, std::uint64_t total) override;
  void on_sent(AppId app, VirtualQpn connection, std::uint64_t total) override;
  void on_transferred(AppId app, VirtualQpn connection, std::uint64_t cookie) override;
  void on_finished(AppId app, VirtualQpn connection) override;
  void on_closed(AppId app, VirtualQpn connection, int error) override;
  void on_returned(AppId app, std::uint32_t region) override;
  void on_detached(AppId app) override;
  void call_peer(PeerId peer, std::vector<std::byte> bytes) override;
  void on_peer_broken(PeerId peer, const char* reason) override;

  void poll();
  void settle();
  void tell(AppId app, std::function<void(FabricClient&)> call);

  twin::Fabric& fabric_;
  twin::HostId host_;
  FabricNodeOptions options_;
  std::unique_ptr<FabricDevice> device_;
  std::unique_ptr<Core> core_;
  std::unordered_map<AppId, FabricClient*> clients_;
  std::vector<std::function<void()>> told_;
  std::unordered_map<PeerId, FabricNode*> peers_;
  std::vector<PeerId> lost_;
  std::string broken_;
  /// Calls under way ask whether they still find anybody.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace greynic::broker
