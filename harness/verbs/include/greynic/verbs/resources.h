#pragma once

/// What lives on a device, each owned by one wrapper: protection domains, memory, completion
/// queues, shared receive queues, queue pairs, address handles, memory windows.
///
/// Wrappers are move-only, come from `create`, keep their parents alive, and log (never throw) when
/// the device refuses to destroy them. They hide nothing: handle() gives the libibverbs object for
/// posting and polling, which is where the time goes. Depths and sizes are what was asked; granted
/// values, which a device may round up, are read back from the device.
///
/// Errors of create: kRefused with the verbs call and errno when the device says no.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"
#include "greynic/verbs/device.h"

struct ibv_ah;
struct ibv_comp_channel;
struct ibv_cq;
struct ibv_mr;
struct ibv_mw;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_ex;
struct ibv_srq;
struct ibv_xrcd;

namespace greynic::verbs {

/// Base of all wrappers here: one owner each, handed on by move.
struct MoveOnly {
  MoveOnly() = default;
  MoveOnly(MoveOnly&&) = default;
  MoveOnly& operator=(MoveOnly&&) = default;
};

class ProtectionDomain : MoveOnly {
 public:
  [[nodiscard]] static Result<ProtectionDomain> create(const Device& device);
  /// The same domain for the QPs of one thread, to which the provider gives a doorbell register of
  /// their own (a thread domain and its parent domain). kRefused where it has none to give.
  [[nodiscard]] static Result<ProtectionDomain> create_for_thread(const Device& device,
                                                                  const ProtectionDomain& pd);
  [[nodiscard]] ibv_pd* handle() const { return pd_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_pd>& share() const { return pd_; }

 private:
  std::shared_ptr<ibv_pd> pd_;
};

/// What remote and local requests may do with memory; any combination.
struct Access {
  bool local_write = true;
  bool remote_read = false;
  bool remote_write = false;
  bool remote_atomic = false;
  bool bind_window = false;
};

/// Memory registered with a protection domain: its own, page-aligned and zeroed, or somebody's.
class MemoryRegion : MoveOnly {
 public:
  /// `huge_pages` takes 2 MiB pages; kRefused with the remedy when the system has none free.
  [[nodiscard]] static Result<MemoryRegion> create(const ProtectionDomain& pd, std::size_t bytes,
                                                   const Access& access, bool huge_pages = false);
  /// Memory that is mapped already, which the other end may READ alone. It has to stay mapped for as
  /// long as the region lives, and address() is null: nobody writes through it. kMissing: Linux before
  /// 6.2 would have to write it, and it is sealed.
  [[nodiscard]] static Result<MemoryRegion> create_read_only(const ProtectionDomain& pd,
                                                             std::span<const std::byte> memory);
  [[nodiscard]] std::span<std::byte> bytes() const { return {address_, size_}; }
  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] std::uint32_t local_key() const;
  [[nodiscard]] std::uint32_t remote_key() const;
  [[nodiscard]] ibv_mr* handle() const { return mr_.get(); }

 private:
  std::byte* address_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<ibv_mr> mr_;  ///< its deleter unmaps the memory after deregistering it
};

class CompletionChannel : MoveOnly {
 public:
  [[nodiscard]] static Result<CompletionChannel> create(const Device& device);
  /// Sleeps until a CQ of this channel has an event, and takes and acknowledges it. False when a
  /// signal came first; only a signal ends a sleep without an event.
  [[nodiscard]] Result<bool> wait();
  [[nodiscard]] ibv_comp_channel* handle() const { return channel_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_comp_channel>& share() const { return channel_; }

 private:
  std::shared_ptr<ibv_comp_channel> channel_;
};

/// When the device tells of completions: after so many, or so long after the first of them.
struct CqModeration {
  std::uint16_t completions = 0;  ///< 0: not asked for, the device's own way
  std::uint16_t period_us = 0;
  bool operator==(const CqModeration&) const = default;
};

class CompletionQueue : MoveOnly {
 public:
  /// With a channel, which it keeps alive, the CQ can be armed for events.
  [[nodiscard]] static Result<CompletionQueue> create(const Device& device, std::uint32_t depth,
                                                      const CompletionChannel* channel = nullptr);
  [[nodiscard]] std::uint32_t depth_granted() const;
  /// Asks for an event at the next completion.
  [[nodiscard]] Result<void> arm();
  /// kRefused where the device has no such thing, as Soft-RoCE.
  [[nodiscard]] Result<void> moderate(const CqModeration& moderation);
  [[nodiscard]] ibv_cq* handle() const { return cq_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_cq>& share() const { return cq_; }

 private:
  std::shared_ptr<ibv_cq> cq_;
};

/// What XRC's target QPs and the shared receive queues that they may reach have in common.
class XrcDomain : MoveOnly {
 public:
  /// A domain of this process alone. kRefused where the device has no XRC.
  [[nodiscard]] static Result<XrcDomain> create(const Device& device);
  [[nodiscard]] ibv_xrcd* handle() const { return domain_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_xrcd>& share() const { return domain_; }

 private:
  std::shared_ptr<ibv_xrcd> domain_;
};

class SharedReceiveQueue : MoveOnly {
 public:
  [[nodiscard]] static Result<SharedReceiveQueue> create(const ProtectionDomain& pd,
                                                         std::uint32_t depth,
                                                         std::uint32_t sge_count = 1);
  /// One that XRC senders name in each request; what arrives completes on its own CQ.
  [[nodiscard]] static Result<SharedReceiveQueue> create_xrc(const Device& device,
                                                             const ProtectionDomain& pd,
                                                             const XrcDomain& domain,
                                                             const CompletionQueue& cq,
                                                             std::uint32_t depth);
  /// By which an XRC sender names it.
  [[nodiscard]] Result<std::uint32_t> number() const;
  [[nodiscard]] std::uint32_t depth_granted() const { return depth_granted_; }
  [[nodiscard]] ibv_srq* handle() const { return srq_.get(); }
  [[nodiscard]] const std::shared_ptr<ibv_srq>& share() const { return srq_; }

 private:
  std::shared_ptr<ibv_srq> srq_;
  std::uint32_t depth_granted_ = 0;
};

struct QueuePairOptions {
  Transport transport = Transport::kRC;
  std::uint32_t send_depth = 128;
  std::uint32_t receive_depth = 0;  ///< ignored with a shared receive queue
  std::uint32_t send_sge = 1;
  std::uint32_t receive_sge = 1;
  std::uint32_t inline_bytes = 0;
  bool extended = true;  ///< ask for ibv_wr_* posting, and do without where it is not offered
};

/// Where the other end of a QP is, and from which GID of ours to reach it.
struct RemoteEnd {
  Gid gid{};
  std::uint16_t lid = 0;
  std::uint32_t qp_number = 0;
  std::uint32_t psn = 0;  ///< packet sequence number its sends begin with
  int local_gid_index = 0;
  bool over_ethernet = true;  ///< a global route header is needed
};

/// Timers and windows of a connection; the defaults are those of common benchmarks.
struct ConnectOptions {
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t own_psn = 0;
  std::uint32_t reads_outstanding =
      255;                        ///< as requester and responder, cut to the device's limits
  std::uint8_t ack_timeout = 14;  ///< 4.096 us * 2^value
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;       ///< 7: without end
  std::uint8_t min_rnr_timer = 12;  ///< code of the InfiniBand table; 12: 0.64 ms
  std::uint32_t qkey = 0x11111111;  ///< UD
  bool remote_access = true;        ///< READ, WRITE and atomics by the other end
};

/// Under XRC a connection joins two QPs of different kinds: one that sends, made by `create`, and
/// the target of the other end, made by `create_xrc_target`, which has no queues: what arrives
/// there goes to the shared receive queue that the request names.
class QueuePair : MoveOnly {
 public:
  [[nodiscard]] static Result<QueuePair> create(const Device& device, const ProtectionDomain& pd,
                                                const CompletionQueue& send_cq,
                                                const CompletionQueue& receive_cq,
                                                const SharedReceiveQueue* srq,
                                                const QueuePairOptions& options);
  [[nodiscard]] static Result<QueuePair> create_xrc_target(const Device& device,
                                                           const XrcDomain& domain);
  /// Takes the QP from reset to ready-to-send, an XRC target to ready-to-receive. UD ignores
  /// `remote`. kRefused names the step.
  [[nodiscard]] Result<void> connect(const RemoteEnd& remote, const ConnectOptions& options);
  /// All that is queued comes back with IBV_WC_WR_FLUSH_ERR.
  [[nodiscard]] Result<void> to_error();
  /// Takes no requests until it is connected again.
  [[nodiscard]] Result<void> to_reset();

  [[nodiscard]] std::uint32_t number() const;
  [[nodiscard]] Transport transport() const { return transport_; }
  [[nodiscard]] const QueuePairOptions& granted() const { return granted_; }
  [[nodiscard]] ibv_qp* handle() const { return qp_.get(); }
  /// For ibv_wr_* posting; null where the device does not offer it.
  [[nodiscard]] ibv_qp_ex* extended() const { return extended_; }

 private:
  Result<void> leave_for(int state, const char* name);

  std::shared_ptr<ibv_qp> qp_;
  ibv_qp_ex* extended_ = nullptr;
  Transport transport_ = Transport::kRC;
  bool target_ = false;  ///< of XRC: only receives
  QueuePairOptions granted_;
  int port_ = 1;
  std::uint32_t reads_as_requester_ = 0;
  std::uint32_t reads_as_responder_ = 0;
};

/// The way to a UD peer.
class AddressHandle : MoveOnly {
 public:
  [[nodiscard]] static Result<AddressHandle> create(const Device& device,
                                                    const ProtectionDomain& pd,
                                                    const RemoteEnd& remote);
  [[nodiscard]] ibv_ah* handle() const { return ah_.get(); }

 private:
  std::shared_ptr<ibv_ah> ah_;
};

/// A type 2 memory window: bound by a work request, ended by an invalidation.
class MemoryWindow : MoveOnly {
 public:
  [[nodiscard]] static Result<MemoryWindow> create(const ProtectionDomain& pd);
  [[nodiscard]] std::uint32_t remote_key() const;
  /// The key after the next bind: the low byte counts binds.
  [[nodiscard]] static std::uint32_t next_key(std::uint32_t key);
  [[nodiscard]] ibv_mw* handle() const { return mw_.get(); }

 private:
  std::shared_ptr<ibv_mw> mw_;
};

}  // namespace greynic::verbs
