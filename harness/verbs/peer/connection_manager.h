#pragma once

/// Connects QPs by rdma_cm. One end listens at an address and port; the other resolves that address
/// and the path to it and asks once for each lane. The connection manager chooses addresses, paths
/// and sequence numbers; all else about a QP is ours. Each object is one end. RC only.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "greynic/verbs/resources.h"

struct rdma_cm_id;
struct rdma_event_channel;

namespace greynic::verbs {

class ConnectionManager {
 public:
  /// An end at a GID of the device. Errors: kMissing when there is no rdma_cm (module rdma_ucm).
  [[nodiscard]] static Result<std::unique_ptr<ConnectionManager>> create(const Device& device,
                                                                         const GidEntry& own);

  /// Called for each lane when its other end is known; brings its QP to ready-to-send.
  using Ready = std::function<Result<void>(std::uint32_t lane, const RemoteEnd& remote,
                                           std::uint32_t own_psn)>;

  /// Listens on a port of the system's choice, which it returns.
  [[nodiscard]] Result<std::uint16_t> listen();
  /// Takes one request for each QP; `limit` is how long it waits for the next step of any.
  [[nodiscard]] Result<void> accept(const std::vector<std::uint32_t>& qp_numbers,
                                    std::chrono::milliseconds limit, const Ready& ready);
  /// Asks the listener at `address` once for each QP. Errors, each naming both addresses: kRefused
  /// (the address or the way to it does not resolve; rejected), kIo (no answer within `limit`).
  [[nodiscard]] Result<void> connect(const Gid& address, std::uint16_t port,
                                     const std::vector<std::uint32_t>& qp_numbers,
                                     std::chrono::milliseconds limit, const Ready& ready);

 private:
  struct FreeId {
    void operator()(rdma_cm_id* id) const noexcept;
  };
  struct FreeChannel {
    void operator()(rdma_event_channel* channel) const noexcept;
  };
  using Id = std::unique_ptr<rdma_cm_id, FreeId>;
  struct Event;

  ConnectionManager() = default;
  [[nodiscard]] Result<Id> make_id() const;
  [[nodiscard]] Result<Event> next(std::chrono::milliseconds limit) const;
  [[nodiscard]] Result<void> expect(int event, std::chrono::milliseconds limit) const;
  [[nodiscard]] Result<void> make_ready(rdma_cm_id* id, std::uint32_t lane,
                                        const Ready& ready) const;

  std::string device_;
  GidEntry own_;
  std::unique_ptr<rdma_event_channel, FreeChannel> channel_;
  Id listener_;
  std::vector<Id> ids_;  ///< before the channel that they belong to goes
};

}  // namespace greynic::verbs
