#pragma once

/// The objects of verbs, as the fabric keeps them. Ids are never used again, so a handle or an event
/// that outlives its object finds nothing.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/packet.h"
#include "parts/host.h"
#include "stages/dcqcn.h"
#include "stages/fifo.h"

namespace greynic::twin::fabric {

/// Objects by id, from 1.
template <typename T>
class Table {
 public:
  template <typename... Args>
  std::uint32_t add(Args&&... args) {
    items_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    return static_cast<std::uint32_t>(items_.size());
  }
  /// Null: there is none, or it is gone.
  [[nodiscard]] T* find(std::uint32_t id) const {
    return id - 1 < items_.size() ? items_[id - 1].get() : nullptr;
  }
  void remove(std::uint32_t id) { items_[id - 1].reset(); }
  [[nodiscard]] std::uint32_t next_id() const {
    return static_cast<std::uint32_t>(items_.size()) + 1;
  }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

struct Domain {
  HostId host = 0;
  std::uint32_t users = 0;
};

struct Watch {
  std::uint32_t thread = 0;
  std::function<void(std::uint64_t)> call;
};

/// A memory region, or a window on one. A key is the id and a tag in its low byte.
struct Memory {
  HostId host = 0;
  std::uint32_t domain = 0;
  std::uint64_t begin = 0, bytes = 0;
  std::uint8_t access = 0;
  std::uint8_t tag = 0;
  bool is_window = false, bound = true;
  std::uint32_t region = 0;                         ///< of a window
  std::uint32_t windows = 0;                        ///< bound to a region
  std::uint64_t first_page = 0, page_bytes = 4096;  ///< among the host's
  std::unique_ptr<Watch> watch;

  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t length) const {
    return address >= begin && length <= bytes && address - begin <= bytes - length;
  }
};

struct Cq {
  std::uint32_t id = 0;
  HostId host = 0;
  CqSpec spec;
  bool armed = false, overrun = false;
  std::uint32_t users = 0;
  Fifo<Completion> entries;
};

struct AddressHandle {
  HostId host = 0;
  std::uint32_t domain = 0;
  HostId to = 0;
};

/// One element in place, since most requests have one.
struct Elements {
  std::uint32_t count = 0;
  Sge first;
  std::vector<Sge> more;
  void assign(std::span<const Sge> from) {
    count = static_cast<std::uint32_t>(from.size());
    if (count > 0) first = from[0];
    more.assign(from.begin() + (count > 0 ? 1 : 0), from.end());
  }
  [[nodiscard]] const Sge& operator[](std::uint32_t i) const {
    return i == 0 ? first : more[i - 1];
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = count > 0 ? first.bytes : 0;
    for (const Sge& sge : more) sum += sge.bytes;
    return sum;
  }
};

struct Receive {
  std::uint64_t id = 0;
  Elements elements;
};

inline constexpr std::uint32_t kMostSrqElements = 4;

struct Srq {
  std::uint32_t id = 0;
  HostId host = 0;
  std::uint32_t domain = 0, depth = 0, limit = 0, users = 0;
  Fifo<Receive> queue;
};

/// What few requests have.
struct WorkDetails {
  AtomicOperands operands;
  SendRequest::Bind bind;
  std::vector<std::byte> inline_bytes;
};

/// A request in a send queue: two lines of a CPU's cache.
struct alignas(64) Work {
  std::uint64_t id = 0;
  WorkKind kind = WorkKind::kSend;
  WcStatus status = WcStatus::kSuccess;  ///< of what failed here, before it was sent
  bool signaled = true, inlined = false, has_immediate = false, invalidate = false;
  bool answered = false;  ///< what it asked for is there
  std::uint32_t immediate = 0, rkey = 0;
  std::uint32_t shape = 0;  ///< of its message
  std::uint32_t psn = 0;
  std::uint64_t bytes = 0, remote_address = 0;
  std::uint32_t to_handle = 0, to_qp = 0;
  std::unique_ptr<WorkDetails> details;  ///< stays when its place is used again
  Elements elements;

  [[nodiscard]] bool asks() const {
    return kind == WorkKind::kRead || kind == WorkKind::kCompareSwap || kind == WorkKind::kFetchAdd;
  }
  [[nodiscard]] bool is_local() const {
    return kind == WorkKind::kBindWindow || kind == WorkKind::kLocalInvalidate;
  }
};

/// What a responder owes: the data of a READ, the result of an atomic, or an acknowledgement that
/// must not overtake them.
struct Response {
  PacketKind kind = PacketKind::kAck;
  std::uint32_t message = 0, index = 0;
  std::uint32_t shape = 0, psn = 0;
  std::uint64_t address = 0, bytes = 0, value = 0;
  std::uint32_t key = 0;
};

/// What a processing unit works on: the requests of a QP, or its answers.
struct Lane {
  std::uint32_t next = kNone;  ///< in its unit's ring
  std::uint32_t ready = 0;     ///< messages whose data was at hand, since the beginning
  std::uint32_t sent = 0;      ///< whole
  std::uint32_t packet = 0;    ///< of the message that is being sent
  bool in_ring = false, held = false;
  Time not_before = 0;
};

struct Pace {
  RateLimiter limiter;
  Time next_cnp = 0;
};

/// Its members stand in the order in which they are looked at, a line of a CPU's cache for each
/// group: with many hosts, every line has to come from memory.
struct alignas(64) Qp {
  std::uint32_t id = 0;      ///< in the table: events go by it. A QP that is reset gets another
  std::uint32_t number = 0;  ///< QPN
  HostId host = 0;
  std::uint32_t ordinal = 0;  ///< among those of its host
  QpSpec spec;
  QpState state = QpState::kReset;
  bool gone = false;  ///< only its place in a unit's ring is left

  QpAttributes attributes;
  std::uint32_t thread = kNone;  ///< who posts
  Cq* send_cq = nullptr;
  std::unique_ptr<ContendedLock> lock;  ///< once a second thread posts
  std::uint64_t first_wqe = 0;          ///< of its send queue, among those of its host

  // The requester. Numbers of requests since the QP was made; each is at most the one before, and
  // `sent` of the lane may go back.
  std::vector<Work> ring;
  std::uint32_t posted = 0, fetched = 0, handled = 0, done = 0;
  std::uint32_t acknowledged = 0;
  std::uint32_t reads_open = 0;
  std::uint32_t hearings = 0, hearings_at_timer = 0;
  std::uint32_t psn = 0;
  std::uint32_t last_shape = ~0U;

  Lane requests;
  std::uint32_t answer_message = 0, answer_index = 0;  ///< what the next answer must be
  bool answer_gap = false, resting = false, timer_on = false;
  std::uint8_t tries = 0, rnr_tries = 0;
  // The responder.
  bool nak_sent = false;
  bool discarding = false;  ///< UC: until the next message begins
  bool refusing = false;    ///< RC: an error is on its way, and nothing is taken any more
  std::uint32_t expected_message = 0, expected_index = 0;
  std::unique_ptr<Pace> pace;

  Fifo<Response> responses;         ///< answers not sent whole; `answers.sent` counts them
  std::uint64_t message_at = 0;     ///< bytes of the message that comes in that are there
  std::uint64_t write_address = 0;  ///< of it
  std::uint32_t write_key = 0;
  Packet* unplaced = nullptr;  ///< the end of a WRITE, whose bytes are not in memory yet
  Operation operation = Operation::kSend;  ///< of the request that came last
  std::uint64_t farthest = 0;  ///< packet that a negative acknowledgement asked for: progress

  std::optional<Receive> taken;  ///< by the message that comes in
  Lane answers;
  Fifo<Receive> receives;
  Time received_at = 0;       ///< completions of receives keep their order
  Fifo<Completion> received;  ///< that nobody can see yet
  Cq* receive_cq = nullptr;
  Srq* srq = nullptr;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> atomic_results;  ///< by message

  [[nodiscard]] Work& work(std::uint32_t n) { return ring[n & (ring.size() - 1)]; }
  [[nodiscard]] bool receives_packets() const {
    return state == QpState::kReadyToReceive || state == QpState::kReadyToSend;
  }
};

}  // namespace greynic::twin::fabric
