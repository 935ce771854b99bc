#pragma once

/// The broker's core: all connections between this host and a peer travel over a few shared QPs.
///
/// The core is driven by events and knows neither threads nor clocks: whoever owns it hands in what
/// applications ask, what the device completed and what peers said out of band, and calls flush()
/// after each batch; the core answers through Owner. So the same code runs on the twin's fabric and
/// on libibverbs. It must not be used from two threads at once, nor from inside an Owner call.
///
/// A connection is a stream of bytes each way between two rings in the segments of its applications,
/// or, over UC and UD, a sequence of messages, each of which arrives whole or not at all. In a ring
/// a message has its length before it, 4 bytes, little-endian.
///
/// The sender's broker sends small pieces, and writes large ones into the far ring, or has them
/// read. Each shared QP is a lane: it carries small pieces (latency) or large ones (bulk), cut into
/// segments and taken from applications in turn. A virtual QPN names a connection in wr_id and in
/// the immediate data; its upper bits count how often the number was given out.
///
/// Promised: bytes arrive once and in order, also when a lane fails and is rebuilt; a receive is
/// posted for each message that may come; a wrong request costs its own connection alone; memory of
/// an application is left in peace when on_closed or on_detached was called.
/// Not promised: a one-sided `transfer` is done once or more often when its lane fails midway.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "greynic/broker/decision.h"
#include "greynic/broker/device.h"
#include "greynic/core/result.h"

namespace greynic::broker {

using AppId = std::uint32_t;
using PeerId = std::uint32_t;
/// A connection: 20 bits of index, 12 bits of generation; 0 is none.
using VirtualQpn = std::uint32_t;

struct CoreOptions {
  std::uint16_t latency_lanes = 1;      ///< QPs to each peer for small messages
  std::uint16_t bulk_lanes = 1;         ///< and for large ones; 0: they share the first
  std::uint32_t segment_bytes = 65536;  ///< most that one WRITE or READ moves
  std::uint32_t receive_bytes = 4096;   ///< of a receive; longer pieces are written or read
  std::uint32_t receive_credits = 128;  ///< receives kept for each peer
  std::uint32_t send_depth = 128;
  /// What a lane has under way at most: this, and not the peer's ring, is what a small message on a
  /// busy lane waits for. Two segments keep 100 Gbit/s busy.
  std::uint64_t in_flight_bytes = 131072;
  std::uint64_t bulk_bytes = 16384;  ///< a connection with more to send goes to a bulk lane
  std::uint32_t connections_per_app = 1 << 20;
  std::uint32_t backlog = 1024;         ///< connections that a listener has not accepted yet
  std::uint32_t transfers_queued = 64;  ///< of a connection
  /// Registrations of lent memory that are kept, and how much they may hold in the machine's memory.
  std::uint64_t registrations = 256;
  std::uint64_t registered_bytes = std::uint64_t{1} << 30;
};

/// Part of an application's segment.
struct Extent {
  std::uint64_t offset = 0, bytes = 0;
};

/// Which verb carries large pieces. kAuto: WRITE, or READ while this host is the busier one.
enum class VerbRule : std::uint8_t { kAuto, kSend, kWrite, kRead };

/// What a connection uses of its application's segment, and by what it is carried.
struct Rings {
  Extent send, receive;
  Extent exposed;  ///< what the other side may transfer from and to; may be empty
  VerbRule rule = VerbRule::kAuto;
  Transport transport = Transport::kRC;  ///< of connect; who accepts takes what was asked for
};

/// Longest messages. UD carries a packet at most, and each RNIC has packets of so many bytes.
inline constexpr std::uint32_t kUcBytes = 4096, kUdBytes = 1024;
/// Before each message in a ring.
inline constexpr std::uint32_t kLengthBytes = 4;

/// What a connection has done, in bytes from its beginning.
struct StreamState {
  std::uint64_t written = 0, acknowledged = 0, received = 0, consumed = 0;
};

/// Whom the core tells. Calls come from inside the core's functions: note and return.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual void on_incoming(AppId app, std::uint16_t port, VirtualQpn connection) = 0;
  virtual void on_open(AppId app, VirtualQpn connection) = 0;
  /// So many bytes of the stream lie in the receive ring, or have lain there.
  virtual void on_received(AppId app, VirtualQpn connection, std::uint64_t total) = 0;
  /// So many bytes have left the send ring for good.
  virtual void on_sent(AppId app, VirtualQpn connection, std::uint64_t total) = 0;
  virtual void on_transferred(AppId app, VirtualQpn connection, std::uint64_t cookie) = 0;
  /// The other side sends no more.
  virtual void on_finished(AppId app, VirtualQpn connection) = 0;
  /// The number is void and its rings are free. 0: both sides had finished.
  virtual void on_closed(AppId app, VirtualQpn connection, int error) = 0;
  /// Lent memory is free.
  virtual void on_returned(AppId app, std::uint32_t region) = 0;
  /// The segment is free, and all that was lent.
  virtual void on_detached(AppId app) = 0;
  /// Bytes for the peer, out of band, in order and whole.
  virtual void call_peer(PeerId peer, std::vector<std::byte> bytes) = 0;
  /// The peer breaks the protocol: hang up and call remove_peer.
  virtual void on_peer_broken(PeerId peer, const char* reason) = 0;
};

struct Counters {
  std::uint64_t verbs[kVerbCount] = {};  ///< requests posted
  std::uint64_t doorbells = 0;           ///< posting calls
  std::uint64_t controls = 0;            ///< records of control
  std::uint64_t rebuilds = 0;            ///< of lanes, without the first time
  std::uint64_t replayed = 0;            ///< requests that were posted again
  std::uint64_t guilty = 0;              ///< connections cut for a request of theirs
  std::uint64_t stale = 0;               ///< messages for virtual QPNs that are void
  std::uint64_t forged = 0;              ///< messages for a connection of another peer
  std::uint64_t garbled = 0;             ///< records that are none
  std::uint64_t chose_write = 0, chose_read = 0, chose_send = 0;  ///< decisions on the verb
  std::uint64_t switches = 0;                     ///< from WRITE to READ and back, by load
  std::uint64_t small_turns = 0, bulk_turns = 0;  ///< decisions on the lane
  std::uint64_t ring_bytes = 0;                   ///< of streams, copied by their applications
  std::uint64_t lent_bytes = 0;                   ///< of streams, sent from where they lay
  std::uint64_t registered = 0, reused = 0;       ///< sends of lent memory, by the cache's answer
  std::uint64_t evicted = 0, not_registered = 0;  ///< registrations that went, or could not be made
  std::uint64_t messages = 0;                     ///< over UC and UD, sent
  std::uint64_t no_room = 0;                      ///< and thrown away: the receiver's ring was full
};

class Core {
 public:
  /// Registers memory of its own. Errors: of the device, kBadInput for options without sense.
  [[nodiscard]] static Result<std::unique_ptr<Core>> create(Device& device, Owner& owner,
                                                            const CoreOptions& options);
  virtual ~Core() = default;

  // ---- peers

  [[nodiscard]] virtual Result<void> add_peer(PeerId peer) = 0;
  /// It is gone: its connections close with ECONNRESET.
  virtual void remove_peer(PeerId peer) = 0;
  virtual void on_peer_call(PeerId peer, std::span<const std::byte> bytes) = 0;
  /// Of this host: decides between WRITE and READ.
  virtual void set_load(const Load& load) = 0;

  // ---- applications; what they hand in is checked. 0, or an error number

  [[nodiscard]] virtual Result<AppId> attach(std::span<std::byte> segment) = 0;
  /// Ends all its connections; on_detached follows.
  virtual void detach(AppId app) = 0;
  virtual int listen(AppId app, std::uint16_t port) = 0;
  virtual int unlisten(AppId app, std::uint16_t port) = 0;
  virtual int connect(AppId app, PeerId peer, std::uint16_t port, const Rings& rings,
                      VirtualQpn& connection) = 0;
  virtual int accept(AppId app, VirtualQpn connection, const Rings& rings) = 0;
  /// So many bytes were written into the send ring in all.
  virtual int send(AppId app, VirtualQpn connection, std::uint64_t total) = 0;
  /// Memory beside the segment, from which streams may be sent without a copy. It stays mapped
  /// until on_returned or on_detached. `region` is the application's number for it, not 0.
  virtual int lend(AppId app, std::uint32_t region, std::span<std::byte> memory) = 0;
  virtual int take_back(AppId app, std::uint32_t region) = 0;
  /// The stream goes on with these bytes, from where they lie in a region; region 0 is the segment.
  /// They must be left alone until on_sent counts them. EBUSY: earlier ones are still on their way;
  /// ENOMEM: they cannot be registered now, so copy them. `made`: they had to be registered.
  virtual int send_from(AppId app, VirtualQpn connection, std::uint32_t region, const Extent& part,
                        bool& made) = 0;
  /// So many bytes were taken from the receive ring in all.
  virtual int consume(AppId app, VirtualQpn connection, std::uint64_t total) = 0;
  /// Moves bytes between the own segment and what the other side exposes.
  virtual int transfer(AppId app, VirtualQpn connection, Verb verb, std::uint64_t own_offset,
                       std::uint64_t far_offset, std::uint64_t bytes, std::uint64_t cookie) = 0;
  /// Sends no more; what was written still goes out.
  virtual int finish(AppId app, VirtualQpn connection) = 0;
  /// Wants no more of it. What was written still goes out; if bytes still come, the other side is
  /// told ECONNRESET.
  virtual int close(AppId app, VirtualQpn connection) = 0;
  [[nodiscard]] virtual const StreamState* find(AppId app, VirtualQpn connection) const = 0;
  /// To whom a connection goes; also from within Owner::on_incoming. 0: there is none.
  [[nodiscard]] virtual PeerId peer_of(VirtualQpn connection) const = 0;
  /// By what it is carried; also from within Owner::on_incoming.
  [[nodiscard]] virtual Transport transport_of(VirtualQpn connection) const = 0;

  // ---- the device

  virtual void on_completions(std::span<const Completion> list) = 0;
  /// An asynchronous event: the QP is in error.
  virtual void on_qp_error(QpNumber qp) = 0;
  /// After Device::to_error: all completions of the QP were handed in.
  virtual void on_drained(QpNumber qp) = 0;
  /// Posts what there is to post, a doorbell for each lane.
  virtual void flush() = 0;

  /// How soon completions of requests must be seen; those of receives must be at once.
  enum class Awaits : std::uint8_t {
    kNothing,  ///< none are under way
    kSoon,     ///< a few small pieces, which hold nothing up: a millisecond is early enough
    kNow,
  };
  [[nodiscard]] virtual Awaits awaits() const = 0;
  [[nodiscard]] virtual const Counters& counters() const = 0;
  [[nodiscard]] virtual std::vector<Decision> decisions() const = 0;
  /// Registrations of lent memory that are kept now, and their bytes.
  [[nodiscard]] virtual std::pair<std::size_t, std::uint64_t> registrations() const = 0;
  [[nodiscard]] virtual std::size_t connection_count() const = 0;
  [[nodiscard]] virtual std::size_t qp_count() const = 0;
  /// Bytes that the broker itself has registered.
  [[nodiscard]] virtual std::size_t own_bytes() const = 0;
};

}  // namespace greynic::broker
