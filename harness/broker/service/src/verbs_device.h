#pragma once

/// An RDMA device as the core wants it, over libibverbs: real RNICs, Soft-RoCE, and the virtual
/// RNICs of `greynic lab-run`.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "greynic/broker/device.h"
#include "greynic/verbs/resources.h"

struct ibv_mr;

namespace greynic::broker {

class VerbsDevice final : public Device {
 public:
  using Clock = std::chrono::steady_clock;
  /// Errors: kMissing (no such device), kUnsupported (iWARP), kRefused.
  [[nodiscard]] static Result<std::unique_ptr<VerbsDevice>> open(const std::string& name, int port,
                                                                 const std::string& gid_rule);
  ~VerbsDevice() override;

  bool has_immediate() const override { return true; }
  Result<Memory> register_memory(std::span<std::byte> memory, Access access) override;
  void deregister(const Memory& memory) override;
  std::uint32_t mtu_bytes() const override {
    return static_cast<std::uint32_t>(port_.active_mtu_bytes);
  }
  Result<QpNumber> create_qp(Transport transport, std::uint32_t send_depth,
                             std::uint32_t receive_depth) override;
  QpAddress address_of(QpNumber qp) const override;
  Result<void> connect(QpNumber qp, const QpAddress& peer) override;
  void to_error(QpNumber qp) override;
  void destroy(QpNumber qp) override;
  std::size_t post(QpNumber qp, std::span<const Work> list) override;
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece> buffers,
                            QpNumber qp) override;

  /// Appends what was received, or also what else has completed; how many there were.
  std::size_t poll(std::vector<Completion>& into, bool also_sends = true);
  /// Readable after arm() when something was received, or also when a request is done; then call
  /// take_events().
  [[nodiscard]] int event_fd() const;
  void arm(bool also_sends);
  /// One at a time: it is readable again while there are more.
  void take_events();
  /// Readable when an asynchronous event is there.
  [[nodiscard]] int async_fd() const;
  /// QPs that asynchronous events say are in error. kIo when the device is gone.
  Result<std::vector<QpNumber>> take_async();
  /// QPs put into error so long ago that no completion of theirs can come any more.
  [[nodiscard]] std::vector<QpNumber> drained(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> next_drained() const;
  /// "mlx5_0 port 1, 10.0.0.7"
  /// 0: it has none, as on Ethernet.
  [[nodiscard]] std::uint16_t lid() const { return port_.lid; }
  [[nodiscard]] const std::string& description() const { return description_; }

 private:
  struct Qp {
    verbs::QueuePair pair;
    std::uint32_t psn = 0;
    // Of UD: a key that no stranger knows, and where it sends to.
    std::uint32_t key = 0, far_qp = 0, far_key = 0;
    verbs::AddressHandle way{};
  };
  VerbsDevice(verbs::Device device, verbs::GidEntry gid, const verbs::PortState& port);
  Result<void> make_queues();
  std::size_t take_completions(std::vector<Completion>& into, bool also_sends);

  verbs::Device device_;
  verbs::GidEntry gid_;
  verbs::PortState port_;
  verbs::ProtectionDomain domain_;
  verbs::CompletionChannel channel_;
  verbs::CompletionQueue send_cq_, receive_cq_;
  bool send_armed_ = false, receive_armed_ = false;
  verbs::SharedReceiveQueue srq_;
  std::unordered_map<QpNumber, Qp> qps_;
  std::unordered_map<std::uint32_t, ibv_mr*> regions_;
  std::vector<std::pair<Clock::time_point, QpNumber>> draining_;
  std::vector<Completion> saved_;  ///< of QPs that are gone: their receives are to be used again
  std::string description_;
  struct Requests;
  std::unique_ptr<Requests> requests_;  ///< of post(): their memory is used again
};

}  // namespace greynic::broker
