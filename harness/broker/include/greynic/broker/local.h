#pragma once

/// What an application and its broker share: a segment of memory and a socket of packets.
///
/// The application makes the segment (a memfd that can neither shrink nor grow) and hands it over
/// when it attaches. Its first page holds the places of two rings, one of requests and one of
/// events, each with one writer and one reader and without a lock. Behind the rings lies the memory
/// that connections use. Who sleeps says so, and is woken then only: a broker by an eventfd that came
/// with its answer, an application by its word in the first page (a futex), or by a byte through the
/// socket when it waits for descriptors. No eventfd for an application, because an eventfd blocks its
/// writer when the other side wants that, and a broker must not block. The broker never reads its own.
///
/// The broker believes nothing of what it reads here: records are copied before they are looked
/// at, and a place that cannot be cuts the application off.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace greynic::broker::local {

inline constexpr std::uint32_t kMagic = 0x67'72'62'04;  ///< the last byte is the version
inline constexpr std::uint32_t kPage = 4096;
inline constexpr std::uint32_t kRequests = 1024, kEvents = 4096;

enum class RequestKind : std::uint8_t {
  kListen = 1,  ///< port; answered by kListening
  kUnlisten,    ///< port
  kConnect,     ///< target, peer_port, port, rings, rule; value comes back with the answer
  kAccept,      ///< connection, rings, rule
  kSend,        ///< connection, value: bytes written into the send ring in all
  kConsume,     ///< connection, value: bytes taken from the receive ring in all
  kFinish,      ///< connection
  kClose,       ///< connection
  kSendFrom,    ///< connection, send: its page is a region (0: the segment), value: place in it
  kTakeBack,    ///< connection: a region
};

/// Part of the segment.
struct Part {
  std::uint32_t page = 0, bytes = 0;
};

struct Request {
  RequestKind kind = RequestKind::kListen;
  std::uint8_t rule = 0;  ///< broker::VerbRule
  std::uint16_t port = 0;
  std::uint32_t connection = 0;
  std::uint64_t value = 0;
  std::array<std::uint8_t, 16> target{};  ///< IPv6 address, or IPv4 as ::ffff:a.b.c.d
  Part send, receive;
  std::uint16_t peer_port = 0;  ///< of the broker there; 0: the usual one
  std::uint16_t lid = 0;        ///< of the port there, in place of the target; 0: none
  std::uint8_t transport = 0;   ///< of kConnect: Transport; RC, UC or UD
  std::array<std::uint8_t, 11> spare{};
};
static_assert(sizeof(Request) == 64);

enum class EventKind : std::uint8_t {
  kListening = 1,  ///< port, error
  kOpened,         ///< connection; value: that of the request
  kFailed,         ///< error; value: that of the request
  kIncoming,       ///< connection, port; its last 16 bytes are the address that it comes from
  kReceived,       ///< connection, value: bytes in all
  kSent,           ///< connection, value: bytes in all, for good
  kFinished,       ///< connection: the other side sends no more
  kClosed,         ///< connection, error: the number is void and the rings are free
  kLent,           ///< connection: a region, error
  kReturned,       ///< connection: a region that was taken back; nothing of it is on its way
  kHeld,  ///< connection, error; value: 1 when the bytes had to be registered. To kSendFrom
};

struct Event {
  EventKind kind = EventKind::kListening;
  std::uint8_t transport = 0;  ///< of kIncoming
  std::uint16_t port = 0;
  std::uint32_t connection = 0;
  std::uint64_t value = 0;
  std::int32_t error = 0;
  std::uint32_t more_spare = 0;
};
static_assert(sizeof(Event) == 24);

/// Of kIncoming: an IPv6 address, or IPv4 as ::ffff:a.b.c.d.
inline constexpr std::size_t kAddressAt = offsetof(Event, value);
static_assert(sizeof(Event) - kAddressAt == 16);

/// The first page of a segment. Places count up and wrap; the reader's follows the writer's.
struct Places {
  std::uint32_t magic = kMagic;
  alignas(64) std::atomic<std::uint32_t> request_written;
  alignas(64) std::atomic<std::uint32_t> request_read;
  alignas(64) std::atomic<std::uint32_t> event_written;
  alignas(64) std::atomic<std::uint32_t> event_read;
  alignas(64) std::atomic<std::uint32_t> broker_sleeps;
  alignas(64) std::atomic<std::uint32_t> application_sleeps;
};
static_assert(sizeof(Places) <= kPage);

inline constexpr std::uint64_t kRequestsAt = kPage;
inline constexpr std::uint64_t kEventsAt = kRequestsAt + sizeof(Request) * kRequests;
inline constexpr std::uint64_t kDataAt =
    (kEventsAt + sizeof(Event) * kEvents + kPage - 1) / kPage * kPage;

/// The writer's end. The reader's place is the other side's: full() says whether it can be.
template <typename Record, std::uint32_t kCount>
class Writer {
 public:
  Writer() = default;
  Writer(std::byte* records, std::atomic<std::uint32_t>& written,
         const std::atomic<std::uint32_t>& read)
      : records_(reinterpret_cast<Record*>(records)), written_(&written), read_(&read) {}
  /// How many may be written; more than kCount: the other side's place cannot be.
  [[nodiscard]] std::uint32_t room() const {
    return kCount - (next_ - read_->load(std::memory_order_acquire));
  }
  [[nodiscard]] bool has_room() {
    if (known_room_ == 0) known_room_ = room();
    return known_room_ != 0;
  }
  [[nodiscard]] bool broken() const { return known_room_ > kCount; }
  /// To be called when has_room() only. Seen by the reader at once.
  void write(const Record& record) {
    records_[next_ % kCount] = record;
    --known_room_;
    written_->store(++next_, std::memory_order_release);
  }

 private:
  Record* records_ = nullptr;
  std::atomic<std::uint32_t>* written_ = nullptr;
  const std::atomic<std::uint32_t>* read_ = nullptr;
  std::uint32_t next_ = 0, known_room_ = 0;
};

template <typename Record, std::uint32_t kCount>
class Reader {
 public:
  Reader() = default;
  Reader(const std::byte* records, const std::atomic<std::uint32_t>& written,
         std::atomic<std::uint32_t>& read)
      : records_(reinterpret_cast<const Record*>(records)), written_(&written), read_(&read) {}
  /// How many wait; more than kCount: the other side's place cannot be.
  [[nodiscard]] std::uint32_t waiting() const {
    return written_->load(std::memory_order_acquire) - next_;
  }
  /// Up to here all was read.
  [[nodiscard]] std::uint32_t place() const { return next_; }
  /// One was written after that place, whether it was read meanwhile or not. From any thread.
  [[nodiscard]] bool has_more_than(std::uint32_t place) const {
    return written_->load(std::memory_order_acquire) != place;
  }
  /// To be called when one waits. A copy: the other side may change the record at any time.
  [[nodiscard]] Record read() {
    Record copy;
    __builtin_memcpy(static_cast<void*>(&copy), records_ + next_++ % kCount, sizeof copy);
    return copy;
  }
  /// Gives the places of what was read back to the writer.
  void release() { read_->store(next_, std::memory_order_release); }

 private:
  const Record* records_ = nullptr;
  const std::atomic<std::uint32_t>* written_ = nullptr;
  std::atomic<std::uint32_t>* read_ = nullptr;
  std::uint32_t next_ = 0;
};

using RequestWriter = Writer<Request, kRequests>;
using RequestReader = Reader<Request, kRequests>;
using EventWriter = Writer<Event, kEvents>;
using EventReader = Reader<Event, kEvents>;

/// How a side sleeps: until anything comes, or, an application that waits for bytes, through events of
/// kSent, of which there is one for each message.
enum class Sleep : std::uint32_t { kAwake = 0, kLight, kThroughSent };
/// Beside how an application sleeps: it waits for that word to change, and not at its socket.
inline constexpr std::uint32_t kOnWord = 4;

/// How a word says that one sleeps.
inline Sleep depth_of(std::uint32_t word) { return static_cast<Sleep>(word & (kOnWord - 1)); }
/// After writing: 0, or the word of the other side, which sleeps and must be woken; says so once.
inline std::uint32_t must_wake(std::atomic<std::uint32_t>& sleeps, bool wrote_only_sent = false) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Sleep how = depth_of(sleeps.load(std::memory_order_relaxed));
  if (how == Sleep::kAwake || (how == Sleep::kThroughSent && wrote_only_sent)) return 0;
  return sleeps.exchange(0, std::memory_order_relaxed);
}
/// Before sleeping; look at the ring once more after it.
inline void say_asleep(std::atomic<std::uint32_t>& sleeps, Sleep how = Sleep::kLight,
                       std::uint32_t beside = 0) {
  sleeps.store(static_cast<std::uint32_t>(how) | beside, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The first packet of an application, with the segment's descriptor, and the broker's answer, with the
/// eventfd that wakes it.
struct Attach {
  std::uint32_t magic = kMagic;
  enum class Kind : std::uint32_t { kAttach = 1, kStatus, kDecisions } kind = Kind::kAttach;
  std::uint64_t bytes = 0;
};
/// What it costs the broker to have memory registered and the application to copy, as measured when
/// the broker started, or as its options say.
struct Costs {
  std::uint32_t register_ns = 0, register_page_ns = 0;
  std::uint32_t copy_page_ns = 0;  ///< 0: nothing is ever registered
};
struct Attached {
  std::uint32_t magic = kMagic;
  std::int32_t error = 0;
  Costs costs;
  std::array<char, 236> reason{};  ///< for people; ends with 0
};
static_assert(sizeof(Attached) == 256);

/// A later packet, with the descriptor of a memfd that cannot shrink: memory beside the segment. The
/// answer is an event.
struct Lend {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;  ///< any number that was not used yet, but 0
  std::uint64_t bytes = 0;
};
/// What an application may lend at a time.
inline constexpr std::size_t kMostRegions = 64;
/// Of lent memory or the segment in one kSendFrom: to register so much takes some milliseconds, which
/// others wait for.
inline constexpr std::uint32_t kMostSentFrom = 4U << 20;

}  // namespace greynic::broker::local
