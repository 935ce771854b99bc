#pragma once

/// One end of a run of traffic: all the queues and memory that a plan asks for, on one device.
///
/// Both ends build the same shape from the same plan. A QP and its buffers are called a lane; lanes
/// are numbered alike at both ends. Lanes are cut into groups of `qps_per_cq` that share a send CQ
/// and a receive CQ; groups are dealt to threads in turn, so no CQ is polled by two threads.
///
/// Memory: `mr_count` regions of `mr_bytes`. With fewer regions than lanes, lanes share a region
/// and each uses bytes of its own; with more, a lane's messages go round its regions. The
/// requesting side has a local set (SEND and WRITE read from it; READ and atomics write to it), the
/// answering side a target set (receive buffers; what WRITE, READ and atomics address).
///
/// XRC: the requesting side has the QPs, the answering side a target QP for each. Each group has
/// its own shared receive queue, which completes on the group's receive CQ.

#include <cstdint>
#include <memory>
#include <vector>

#include "greynic/verbs/traffic_plan.h"

struct ibv_recv_wr;
struct ibv_sge;

namespace greynic::verbs {

/// Where message k of a lane lies: slot k modulo the number of slots.
struct Slot {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
};

/// The slots of one lane; both ends compute the same. At least one.
[[nodiscard]] std::vector<Slot> slots_of(const TrafficPlan& plan, std::uint32_t lane);
/// Lanes or messages share bytes, so that payloads cannot be told apart.
[[nodiscard]] bool slots_overlap(const TrafficPlan& plan);
/// Memory windows of each lane under SEND_WITH_INV: the messages that may be under way.
[[nodiscard]] std::uint32_t windows_per_lane(const TrafficPlan& plan);
/// Receives that a lane has posted at most: under SEND_WITH_INV one for each window.
[[nodiscard]] std::uint32_t receives_per_lane(const TrafficPlan& plan);

/// What the other end must know. It travels in one message, however many QPs there are.
struct EndpointDescription {
  Gid gid{};
  std::uint16_t lid = 0;
  bool ethernet = true;
  std::uint32_t psn = 0;                        ///< of lane 0; lane i starts at psn + i
  std::vector<std::uint32_t> qp_numbers;        ///< by lane; XRC: of an end that requests
  std::vector<std::uint64_t> target_addresses;  ///< one for each region of the target set
  std::vector<std::uint32_t> target_keys;
  std::uint16_t listens_at = 0;            ///< port where rdma_cm takes connections; 0: nowhere
  std::vector<std::uint32_t> window_keys;  ///< SEND_WITH_INV: lane-major, before their first bind
  std::vector<std::uint32_t> xrc_targets;  ///< XRC: by lane, where the other end's QPs connect to
  std::vector<std::uint32_t> srq_numbers;  ///< XRC: by group, named by each request that sends
};

struct EndpointRole {
  bool requests = false;
  bool answers = false;
  bool listens = false;  ///< of two ends that rdma_cm connects, the one that is asked
};

class ConnectionManager;

enum class CqSide : std::uint8_t { kSend, kReceive };

class Endpoint {
 public:
  /// Errors: kRefused with what the device, or the machine's memory, would not give.
  [[nodiscard]] static Result<Endpoint> create(const Device& device, const TrafficPlan& plan,
                                               EndpointRole role);
  ~Endpoint();
  Endpoint(Endpoint&&) noexcept;
  Endpoint& operator=(Endpoint&&) noexcept;

  [[nodiscard]] EndpointDescription describe() const;
  /// Connects every lane and, on an answering end, fills the receive queues. Under
  /// plan.connection_manager both ends must be in this call at the same time; kIo when the other is
  /// not heard of for plan.stall_limit.
  [[nodiscard]] Result<void> connect(const EndpointDescription& remote,
                                     const ConnectOptions& options = {});

  [[nodiscard]] const TrafficPlan& plan() const { return plan_; }
  [[nodiscard]] const EndpointRole& role() const { return role_; }
  [[nodiscard]] const EndpointDescription& remote() const { return remote_; }
  [[nodiscard]] QueuePair& qp(std::uint32_t lane) { return qps_[lane]; }
  [[nodiscard]] ibv_ah* address_handle(std::uint32_t lane) const;
  [[nodiscard]] const std::vector<Slot>& slots(std::uint32_t lane) const { return slots_[lane]; }
  [[nodiscard]] const MemoryRegion& local(const Slot& slot) const { return local_[slot.region]; }
  [[nodiscard]] const MemoryRegion& target(const Slot& slot) const { return target_[slot.region]; }
  [[nodiscard]] MemoryWindow& window(std::uint32_t lane, std::uint32_t index);

  /// Hands one receive slot of a lane to the device (or to the shared queue: any lane's). 0 or an
  /// errno.
  [[nodiscard]] int post_receive(std::uint32_t lane, std::uint32_t slot);
  /// The same in two steps, for lists: the request for a slot, which points to `sge`, and handing a
  /// chain of them to a queue, whose number is that of its lane or shared queue.
  void describe_receive(std::uint32_t lane, std::uint32_t slot, ibv_recv_wr& request,
                        ibv_sge& sge) const;
  [[nodiscard]] int post_receives(std::uint32_t queue, ibv_recv_wr& first);
  [[nodiscard]] std::uint32_t receive_queue_of(std::uint32_t lane) const;

  struct Group {
    std::uint32_t first_lane = 0;
    std::uint32_t lane_count = 0;
    std::uint32_t thread = 0;  ///< the one that polls it
    CompletionQueue send_cq;
    CompletionQueue receive_cq;
  };
  [[nodiscard]] std::vector<Group>& groups() { return groups_; }
  /// The event channel of a thread, one for each side: a bidirectional run sleeps on both at once.
  /// Null in polling mode.
  [[nodiscard]] CompletionChannel* channel(std::uint32_t thread, CqSide side);
  /// The descriptors that its traffic goes through: the device's, and those of the channels.
  [[nodiscard]] std::vector<int> files() const;
  [[nodiscard]] std::uint32_t lane_of_qp(std::uint32_t qp_number) const;
  /// XRC: the other end's shared receive queue for what this lane sends; 0 where it has none.
  [[nodiscard]] std::uint32_t remote_srq(std::uint32_t lane) const;

 private:
  Endpoint();
  Result<void> connect_directly(const ConnectOptions& options);
  Result<void> connect_by_manager(const ConnectOptions& options);
  /// The protection domain of what `fault` puts into another one: under that fault one to which no
  /// QP belongs, made in `other`, and else the endpoint's.
  Result<const ProtectionDomain*> domain_under(Fault fault,
                                               std::optional<ProtectionDomain>& other) const;
  Result<void> make_memory();
  Result<void> make_queues();
  Result<void> make_group(std::uint32_t first_lane);
  Result<void> make_qp(const Group& group, std::uint32_t lane);
  [[nodiscard]] RemoteEnd end_of(std::uint32_t lane, std::uint32_t qp_number) const;
  [[nodiscard]] bool srq_of_each_group() const { return xrc_domain_ || plan_.srq_per_cq; }
  Result<void> fill_receive_queues();

  const Device* device_ = nullptr;
  TrafficPlan plan_;
  EndpointRole role_;
  std::uint32_t receive_bytes_ = 0;  ///< of the buffer of each receive
  GidEntry gid_;
  PortState port_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::vector<ProtectionDomain>
      thread_pds_;  ///< by thread, where each has its own doorbell register
  std::vector<MemoryRegion> local_;
  std::vector<MemoryRegion> target_;
  std::vector<CompletionChannel> channels_;
  std::vector<Group> groups_;
  std::unique_ptr<XrcDomain> xrc_domain_;
  std::vector<SharedReceiveQueue> srqs_;  ///< none, one for all, or one for each group
  std::unique_ptr<ConnectionManager> manager_;
  std::uint16_t listens_at_ = 0;
  std::vector<std::uint32_t> srq_numbers_;  ///< XRC: of srqs_
  std::vector<QueuePair> qps_;              ///< XRC: of an end that requests
  std::vector<QueuePair> xrc_targets_;      ///< XRC: of an end that answers
  /// After the QPs, to be freed before them: a bound window holds its QP, and Soft-RoCE waits up to
  /// 50 s for each holder of a QP that is destroyed.
  std::vector<MemoryWindow> windows_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lane_by_number_;  ///< sorted by QP number
  std::vector<AddressHandle> address_handles_;
  std::vector<std::vector<Slot>> slots_;
  EndpointDescription remote_;
};

}  // namespace greynic::verbs
