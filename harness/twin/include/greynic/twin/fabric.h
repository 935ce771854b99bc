#pragma once

/// A network of virtual RNICs that programs run on, in virtual time and in one thread.
///
/// Programs register memory, create QPs, post, poll and watch, as they do with verbs; the fabric
/// moves their bytes. It is made of the parts that `Target::measure` is made of, so the same
/// workload takes the same time on both. What differs is that a packet is an event at every queue:
/// programs post when they like, hosts hang on any leaf-spine, and queues can be looked at.
///
/// How a program runs: it is a set of callbacks. `run_until` takes what happens next and calls who
/// waits for it. Each callback belongs to a thread of a host. That thread has a clock of its own:
/// posting and polling move it by what the host model says, `spend` by what you say, and what a
/// thread posts reaches the RNIC by that clock. A thread that is busy is called when it is free.
///
/// Bad handles, freed objects and objects of another host are errors or completion statuses, never
/// a crash. Statuses are those of the InfiniBand specification, under their verbs names.
///
/// Not modelled: XRC and DC transports, multicast, fences. A fabric may move between threads, but
/// must not be used from two at once. docs/twin/fabric.md: an example that runs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/core/verbs_words.h"

namespace greynic::twin {

using Time = double;  ///< virtual nanoseconds

/// A host by its number, from 0.
using HostId = std::uint32_t;

/// Objects of a host. A handle is never used again for another object.
template <typename Tag>
struct Handle {
  std::uint32_t id = 0;  ///< 0: none
  [[nodiscard]] bool operator==(const Handle&) const = default;
};
using DomainId = Handle<struct DomainTag>;          ///< protection domain
using RegionId = Handle<struct RegionTag>;          ///< memory region
using WindowId = Handle<struct WindowTag>;          ///< memory window, type 2
using CqId = Handle<struct CqTag>;                  ///< completion queue
using SrqId = Handle<struct SrqTag>;                ///< shared receive queue
using QpId = Handle<struct QpTag>;                  ///< queue pair; the id is its number (QPN)
using AddressHandleId = Handle<struct AddressTag>;  ///< where a datagram goes

/// Bits of what a region, a window or a QP allows.
namespace access {
inline constexpr std::uint8_t kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4, kRemoteAtomic = 8;
inline constexpr std::uint8_t kAll = 15;
}  // namespace access

/// Numbers are those of ibv_wc_status.
enum class WcStatus : std::uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQpOperation = 2,
  kLocalProtection = 4,
  kFlushed = 5,
  kWindowBind = 6,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetriesExceeded = 12,
  kRnrRetriesExceeded = 13,
};
/// "IBV_WC_REM_ACCESS_ERR"
[[nodiscard]] std::string_view to_string(WcStatus status);

enum class QpState : std::uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };

enum class WorkKind : std::uint8_t {
  kSend,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kBindWindow,
  kLocalInvalidate,
  kReceive,          ///< in completions only
  kReceiveWriteImm,  ///< a WRITE with immediate data took the receive
};

struct Sge {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t lkey = 0;
};

struct SendRequest {
  std::uint64_t id = 0;  ///< comes back in the completion
  WorkKind kind = WorkKind::kSend;
  std::span<const Sge> elements;  ///< read while posting
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;  ///< WRITE, READ, atomics; kLocalInvalidate: what becomes invalid;
                           ///< SEND with `invalidate`: at the receiver
  bool signaled = true;
  bool inlined = false;  ///< bytes are taken while posting
  bool has_immediate = false, invalidate = false;
  std::uint32_t immediate = 0;
  std::uint64_t compare_add = 0, swap = 0;  ///< of atomics
  AddressHandleId to;                       ///< UD
  std::uint32_t to_qp = 0;                  ///< UD
  struct Bind {
    WindowId window;
    RegionId region;
    std::uint64_t address = 0, bytes = 0;
    std::uint8_t access = 0;
    std::uint8_t key_tag = 0;  ///< the low byte of the window's new key
  } bind;                      ///< kBindWindow
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::span<const Sge> elements;
};

struct Completion {
  std::uint64_t id = 0;
  WcStatus status = WcStatus::kSuccess;
  WorkKind kind = WorkKind::kSend;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  std::uint32_t qp = 0;       ///< number of the QP that it is of
  std::uint32_t from_qp = 0;  ///< UD receives
  HostId from_host = 0;       ///< UD receives
  std::uint64_t bytes = 0;    ///< of receives; UD: without the 40 bytes of routing header
};

/// What a call that posts says: 0 or an error number (EINVAL, ENOMEM), and how many were posted.
struct Posted {
  int error = 0;
  std::size_t count = 0;
  [[nodiscard]] explicit operator bool() const { return error == 0; }
};

enum class AsyncKind : std::uint8_t {
  kCqOverrun,       ///< completions are lost
  kQpFatal,         ///< a QP went to the error state by itself
  kQpRequestError,  ///< the other side asked for what is invalid
  kQpAccessError,   ///< or for memory that it has no right to
  kSrqLimit,        ///< fewer receives are left than the limit says
  kLastReceive,     ///< a QP in error takes no more from its SRQ
};
struct AsyncEvent {
  AsyncKind kind = AsyncKind::kQpFatal;
  HostId host = 0;
  std::uint32_t object = 0;  ///< id of the CQ, QP or SRQ
};

struct CqSpec {
  std::uint32_t depth = 256;
  std::uint32_t thread = 0;        ///< of the host: who is called
  std::function<void()> on_event;  ///< after arm(), at the next completion
};

struct QpSpec {
  Transport transport = Transport::kRC;  ///< RC, UC or UD
  DomainId domain;
  CqId send_cq, receive_cq;
  SrqId srq;  ///< none: receives of its own
  std::uint32_t send_depth = 128, receive_depth = 512;
  std::uint32_t send_elements = 4, receive_elements = 4;
  std::uint32_t inline_bytes = 0;
  bool own_doorbell = false;  ///< a doorbell register that no other QP rings (a thread domain)
};

/// Fields of ibv_qp_attr; defaults are perftest's, but for MTU, which is that of the twin.
struct QpAttributes {
  HostId peer_host = 0;
  std::uint32_t peer_qp = 0;
  std::uint32_t mtu_bytes = 1024;
  std::uint8_t access = access::kAll;  ///< what the other side may do
  int ack_timeout = 14, retry_count = 7, rnr_retry = 7, min_rnr_timer = 12;
  std::uint32_t most_reads = 255;  ///< READs and atomics that the requester has open at once
};

// ---- what the network is made of

struct HostSpec {
  std::string rnic = "cx6";  ///< a model that is compiled in, or a file
  std::string profile;       ///< empty: the model's own
  /// VXLAN around each packet; unset: where the RNIC has a switch.
  enum class Overlay : std::uint8_t { kByModel, kOn, kOff } overlay = Overlay::kByModel;
  double encap_groups = 0, decap_groups = 0;  ///< of flow rules on its eSwitch, by direction
  std::uint32_t thread_count = 1;  ///< that its programs run; beyond the cores they share them
  double link_gbps = 0;            ///< slower than the model's; 0: the model's
};

struct FabricSpec {
  std::uint32_t host_count = 2;
  HostSpec host;                      ///< all hosts
  std::map<HostId, HostSpec> others;  ///< but these
  std::uint32_t hosts_per_leaf = 0;   ///< 0: one switch for all
  std::uint32_t spine_count = 2;
  double uplink_gbps = 0;  ///< of each leaf to each spine; 0: as fast as the hosts under it need
  Time hop_ns = 300;       ///< from one switch to the next
  bool pfc = true;         ///< false: a port drops what its buffer cannot hold
  bool dcqcn = false;
  double loss = 0;  ///< share of packets that links corrupt
  /// kCounted: payload is neither kept nor copied, for runs where only time matters.
  enum class Bytes : std::uint8_t { kReal, kCounted } bytes = Bytes::kReal;
  std::uint64_t seed = 1;
};

/// A queue that packets wait in. Switches are numbered leaves first; a host's egress is port 0 of
/// its host.
struct PortId {
  bool of_host = false;
  std::uint32_t device = 0;  ///< host or switch
  std::uint32_t port = 0;    ///< of a leaf: its hosts, then spines; of a spine: leaves
  [[nodiscard]] bool operator==(const PortId&) const = default;
};

/// One packet in one queue: what a switch's egress pipeline sees.
struct PacketRecord {
  PortId port;
  std::uint32_t source_ip = 0, destination_ip = 0;  ///< 10.0.0.0 + host number + 1
  std::uint16_t source_port = 0, destination_port = 4791;
  std::uint8_t protocol = 17;
  std::uint8_t opcode = 0;  ///< of the BTH
  std::uint32_t destination_qp = 0, psn = 0;
  std::uint32_t bytes = 0;  ///< of the frame
  bool marked = false;      ///< ECN: congestion experienced
  Time enqueued = 0, dequeued = 0;
  std::uint64_t depth_at_enqueue = 0;  ///< bytes in the queue, this packet among them
  std::uint64_t depth_at_dequeue = 0;  ///< bytes that stay when it leaves
};

class PortObserver {
 public:
  virtual ~PortObserver() = default;
  /// Of a switch port: when the packet leaves the queue. Of a host: soon after, in order.
  virtual void on_packet(const PacketRecord& record) = 0;
};

class Fabric {
 public:
  /// kBadInput for an unknown model, or numbers that no network has; the message says which.
  [[nodiscard]] static Result<std::unique_ptr<Fabric>> create(const FabricSpec& spec);
  virtual ~Fabric() = default;

  // ---- time

  [[nodiscard]] virtual Time now() const = 0;
  /// What happens next. False: nothing will.
  virtual bool step() = 0;
  /// All that happens up to `until`; now() is `until` then.
  virtual void run_until(Time until) = 0;
  /// Until nothing is left to happen. Timers count, so a program must end by itself.
  virtual void run() = 0;
  virtual void at(Time time, std::function<void()> call) = 0;

  // ---- threads of hosts

  /// Calls as the thread, as soon as it is free at or after `earliest`.
  virtual void on_thread(HostId host, std::uint32_t thread, std::function<void()> call,
                         Time earliest = 0) = 0;
  /// The thread that now runs works for so long (outside a callback: the host's thread 0).
  virtual void spend(HostId host, Time ns) = 0;
  /// The clock of a thread: now, or when it is through with what it has done.
  [[nodiscard]] virtual Time thread_time(HostId host, std::uint32_t thread) const = 0;

  // ---- objects; kBadInput for handles that are none, kRefused for what is in use

  [[nodiscard]] virtual Result<DomainId> create_domain(HostId host) = 0;
  /// The memory stays the caller's, and must live until it is deregistered.
  [[nodiscard]] virtual Result<RegionId> register_memory(DomainId domain,
                                                         std::span<std::byte> memory,
                                                         std::uint8_t access,
                                                         std::uint64_t page_bytes = 4096) = 0;
  /// Memory that nobody has; only with Bytes::kCounted. Its address is region_address().
  [[nodiscard]] virtual Result<RegionId> register_counted(DomainId domain, std::uint64_t bytes,
                                                          std::uint8_t access,
                                                          std::uint64_t page_bytes = 4096) = 0;
  [[nodiscard]] virtual std::uint64_t region_address(RegionId region) const = 0;
  /// lkey and rkey alike; 0 of no region.
  [[nodiscard]] virtual std::uint32_t key(RegionId region) const = 0;
  [[nodiscard]] virtual Result<WindowId> create_window(DomainId domain) = 0;
  [[nodiscard]] virtual std::uint32_t key(WindowId window) const = 0;
  [[nodiscard]] virtual Result<CqId> create_cq(HostId host, CqSpec spec) = 0;
  /// `limit`: kSrqLimit once, when fewer are left; 0: none.
  [[nodiscard]] virtual Result<SrqId> create_srq(DomainId domain, std::uint32_t depth,
                                                 std::uint32_t limit = 0) = 0;
  [[nodiscard]] virtual Result<AddressHandleId> create_address_handle(DomainId domain,
                                                                      HostId to) = 0;
  [[nodiscard]] virtual Result<QpId> create_qp(const QpSpec& spec) = 0;
  [[nodiscard]] virtual Result<void> destroy(DomainId domain) = 0;
  [[nodiscard]] virtual Result<void> destroy(RegionId region) = 0;
  [[nodiscard]] virtual Result<void> destroy(WindowId window) = 0;
  [[nodiscard]] virtual Result<void> destroy(CqId cq) = 0;
  [[nodiscard]] virtual Result<void> destroy(SrqId srq) = 0;
  [[nodiscard]] virtual Result<void> destroy(AddressHandleId handle) = 0;
  [[nodiscard]] virtual Result<void> destroy(QpId qp) = 0;

  /// One step of the state machine: Reset, Init, ReadyToReceive, ReadyToSend; Error and Reset from
  /// anywhere. Attributes are read on the way to Init (access), ReadyToReceive and ReadyToSend.
  [[nodiscard]] virtual Result<void> modify(QpId qp, QpState to,
                                            const QpAttributes& attributes = {}) = 0;
  [[nodiscard]] virtual Result<QpState> state(QpId qp) const = 0;
  /// Two new QPs of two hosts all the way to ReadyToSend. Peers are filled in.
  [[nodiscard]] Result<void> connect(QpId a, HostId host_a, QpId b, HostId host_b,
                                     QpAttributes attributes = {});

  // ---- data path

  [[nodiscard]] virtual Posted post_send(QpId qp, std::span<const SendRequest> list) = 0;
  [[nodiscard]] virtual Posted post_receive(QpId qp, std::span<const ReceiveRequest> list) = 0;
  [[nodiscard]] virtual Posted post_receive(SrqId srq, std::span<const ReceiveRequest> list) = 0;
  /// Fills `out`; returns how many. -1: no CQ, or one that has overrun.
  [[nodiscard]] virtual int poll(CqId cq, std::span<Completion> out) = 0;
  /// Completions that lie in the queue.
  [[nodiscard]] virtual std::size_t completion_count(CqId cq) const = 0;
  /// The next completion calls on_event, once. What lies in the queue already does not.
  virtual void arm(CqId cq) = 0;
  virtual void on_async_event(HostId host, std::function<void(const AsyncEvent&)> call) = 0;
  /// Calls as the thread when a WRITE or atomic of another QP is whole in the region: what a
  /// program sees that spins on its memory.
  [[nodiscard]] virtual Result<void> watch(RegionId region, std::uint32_t thread,
                                           std::function<void(std::uint64_t address)> call) = 0;

  // ---- the network

  [[nodiscard]] virtual std::uint32_t host_count() const = 0;
  /// Rules on a host's eSwitch change: groups that packets out and in are checked against.
  [[nodiscard]] virtual Result<void> set_groups(HostId host, double encap, double decap) = 0;
  /// Watches one queue; null takes the observer away.
  [[nodiscard]] virtual Result<void> observe(PortId port, PortObserver* observer) = 0;
  /// All queues there are.
  [[nodiscard]] virtual std::vector<PortId> ports() const = 0;
  /// How fast a queue drains; 0: no such port.
  [[nodiscard]] virtual double port_gbps(PortId port) const = 0;
  /// Of a host's RNIC, under the names that drivers give them; the same order every time.
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> counters(HostId host) const = 0;
  /// Packets handed to a host so far, of all hosts: data and answers.
  [[nodiscard]] virtual std::uint64_t packet_count() const = 0;
  /// Bytes that a host takes, its QPs among them, without the memory of its programs.
  [[nodiscard]] virtual std::size_t bytes_of_host(HostId host) const = 0;
};

}  // namespace greynic::twin
