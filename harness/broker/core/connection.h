#pragma once

/// What the core knows of a connection, an application and a shared QP.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/fair_queue.h"
#include "core/verb_choice.h"
#include "core/wire.h"
#include "greynic/broker/core.h"

namespace greynic::broker {

/// A one-sided request of an application, cut into pieces when it is posted.
struct Transfer {
  Verb verb = Verb::kRead;
  std::uint64_t own_offset = 0, far_offset = 0, bytes = 0, cookie = 0;
  std::uint64_t posted = 0;
};

struct Connection {
  enum class Phase : std::uint8_t {
    kOpening,   ///< kOpen is on its way
    kIncoming,  ///< not accepted yet
    kOpen,
    kResetting,  ///< ended here: kReset goes out once nothing is under way, then kResetDone comes
    kStopping,   ///< ended there: kResetDone goes out once nothing is under way
  };
  Phase phase = Phase::kOpening;
  VirtualQpn self = 0, other = 0;
  PeerId peer = 0;
  AppId app = 0;
  std::uint16_t port = 0;
  Transport transport = Transport::kRC;
  Rings rings;
  Control::Range far_ring, far_exposed;
  StreamState stream;
  std::uint64_t posted = 0;         ///< of the stream: handed to the lane
  std::uint64_t far_consumed = 0;   ///< taken by the application at the other end
  std::uint64_t told_consumed = 0;  ///< what the other end knows of ours
  std::uint64_t offered = 0;        ///< bytes that the other end is reading just now
  struct Pull {
    Control::Range range;
    std::uint64_t posted = 0, done = 0;
  };
  std::optional<Pull> pull;  ///< bytes that we are reading just now
  /// Bytes of the stream that lie beside the send ring.
  struct Lent {
    std::uint64_t from = 0, bytes = 0;  ///< places in the stream
    std::uint32_t region = 0;
    std::uint64_t registration = 0;
    Memory memory;
    Decision::From kind = Decision::From::kSegment;
    [[nodiscard]] std::uint64_t end() const { return from + bytes; }
  };
  std::optional<Lent> lent;
  std::uint64_t past_ring = 0;  ///< bytes that were lent and are through
  std::deque<Transfer> transfers;
  std::uint32_t transfers_open = 0;
  std::deque<Control> controls;  ///< that must stay in order with the stream
  std::uint16_t lane = 0;
  std::uint32_t under_way = 0;  ///< requests on the lane
  bool queued = false;          ///< waits for its turn on the lane
  bool wants_finish = false, finish_sent = false, finish_received = false;
  bool released = false;    ///< the application has closed it
  bool reset_told = false;  ///< kReset was sent
  int error = 0;

  [[nodiscard]] bool is_stream() const { return transport == Transport::kRC; }
};

struct App {
  std::span<std::byte> segment;
  Memory memory;
  std::set<VirtualQpn> connections;
  /// What it has lent, by its own numbers; empty: it wants that back.
  std::map<std::uint32_t, std::span<std::byte>> lent;
  bool leaving = false;
};

struct Listener {
  AppId app = 0;
  std::uint32_t waiting = 0;
};

/// A request on a lane, kept until it is known to be done, so that it can be posted again.
struct Sent {
  enum class Kind : std::uint8_t {
    kControl,
    kRecord,
    kStream,
    kTransfer,
    kPull,
    kCredit,
    kWritten
  };
  Kind kind = Kind::kControl;
  Work work;
  VirtualQpn connection = 0;
  Control::Kind record = Control::Kind::kCredit;  ///< of a kRecord
  std::uint32_t bytes = 0;
  bool numbered = false;  ///< takes a receive at the other end
  bool credited = false;  ///< and was paid for
  bool last = false;      ///< of a transfer
  bool guilty = false;
  bool quiet = false;  ///< small, and nothing is held up until it is done
  std::uint64_t sequence = 0;
  std::uint64_t cookie = 0;
  std::int32_t slot = -1;  ///< of the lane's own memory
};

/// Used receives wait until there are so many, and are then posted together. As many more are kept.
inline constexpr std::size_t kRefill = 16;

/// Receives of a lane over UC or UD, and the bit of their ids that tells them from shared ones.
inline constexpr std::uint32_t kMessageReceives = 128;
inline constexpr std::uint64_t kMessageReceive = std::uint64_t{1} << 63;

/// Of a lane's own memory: a prefix and some records.
inline constexpr std::size_t kSlotBytes = 1024;

/// One shared QP.
struct Lane {
  enum class Phase : std::uint8_t {
    kUnused,    ///< no connection has needed it yet
    kDraining,  ///< in error: its completions are awaited
    kCalling,   ///< a new QP is there; the other end's is awaited
    kJoining,   ///< connected; the other end must say that it is too
    kReady,
  };
  explicit Lane(std::int64_t quantum) : turns(quantum) {}
  Phase phase = Phase::kCalling;
  std::uint16_t index = 0;
  Transport transport = Transport::kRC;
  QpNumber qp = 0;
  std::uint32_t epoch = 0;
  bool far_ready = false;
  std::optional<LaneCall> far_call;
  std::deque<Sent> sent;
  std::size_t posted = 0;       ///< of `sent`
  std::uint32_t next_id = 0;    ///< of the request after the last of `sent`
  std::uint64_t numbered = 0;   ///< messages sent so far
  std::uint64_t received = 0;   ///< messages received so far
  std::uint64_t in_flight = 0;  ///< bytes
  FairQueue turns;
  std::vector<std::int32_t> free_slots;
  bool dirty = false;
};

/// All that goes to one peer.
struct Link {
  PeerId peer = 0;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::uint64_t credits = 0;  ///< receives that the peer keeps for us
  std::uint64_t used = 0, returned = 0;
  std::uint64_t taken = 0, told_taken = 0;  ///< receives of ours that were used and posted again
  std::deque<Control> controls;             ///< in order with nothing but each other
  bool credit_due = false;
  VerbChoice choice;
};

}  // namespace greynic::broker
