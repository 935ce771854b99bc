#pragma once

/// The objects of verbs. Each begins with the structure that programs see.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "preload/verbs_headers.h"
#include "protocol/ring.h"

namespace greynic::lab {

using Clock = std::chrono::steady_clock;
struct Qp;
struct Srq;

struct Pd {
  ibv_pd seen{};
  Pd* parent = nullptr;  ///< of a parent domain: the domain that its objects belong to
  int users = 0;
  [[nodiscard]] Pd* whole() { return parent ? parent : this; }
};

/// What an lkey or rkey stands for. The low byte of a key changes when its entry is used again.
struct MemoryEntry {
  enum class Kind : std::uint8_t { kNone, kRegion, kNothing, kWindow1, kWindow2 };
  Kind kind = Kind::kNone;  ///< kNothing: a region that swallows writes and reads as 0
  std::uint8_t tag = 0;
  bool valid = false;
  unsigned access = 0;
  Pd* pd = nullptr;
  std::uint64_t begin = 0, length = 0;  ///< addresses that peers use
  std::byte* memory = nullptr;          ///< where `begin` lies
  std::uint32_t region = 0;             ///< of a bound window: index of its region
  std::uint32_t windows = 0;            ///< of a region: windows bound to it
  Qp* qp = nullptr;                     ///< of a bound window of type 2
};

struct Region {
  ibv_mr seen{};
  std::byte* device_memory = nullptr;
};

/// A descriptor that is readable while something waits, as programs that poll() it expect.
class Bell {
 public:
  /// `by_count`: each take() is one ring(); otherwise it takes all.
  explicit Bell(bool by_count = true);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  void ring() const;
  /// Takes one ring, waiting for it unless the descriptor does not block; false with errno.
  [[nodiscard]] bool take() const;

 private:
  int fd_ = -1;
};

struct Cq;
struct EventChannel {
  ibv_comp_channel seen{};
  std::uint32_t number = 0;  ///< from 1
  Bell bell;
  std::deque<Cq*> events;
};

struct CompletionEntry {
  ibv_wc wc{};
  std::uint64_t time_ns = 0;
};

struct Cq {
  ibv_cq_ex seen{};
  std::deque<CompletionEntry> entries;
  std::atomic<std::size_t> count{0};  ///< of entries, to see emptiness without the lock
  std::size_t capacity = 0;
  CompletionEntry current;   ///< of the extended poll
  bool unannounced = false;  ///< something came, or was polled, since the last event
  bool armed = false, armed_solicited_only = false, overrun = false, ignore_overrun = false;
  std::uint32_t events_given = 0, async_given = 0;
  int users = 0;
};

struct ReceiveWork {
  std::uint64_t id = 0;
  std::vector<ibv_sge> elements;
};

struct Xrcd {
  ibv_xrcd seen{};
  int users = 0;
};

struct Srq {
  ibv_srq seen{};
  std::deque<ReceiveWork> work;
  std::uint32_t depth = 0, most_elements = 0, limit = 0;
  std::uint32_t number = 0;  ///< XRC
  ibv_srq_type type = IBV_SRQT_BASIC;
  Xrcd* domain = nullptr;
  Cq* cq = nullptr;  ///< XRC
  std::uint32_t async_given = 0;
  int users = 0;
};

struct AddressHandle {
  ibv_ah seen{};
  ibv_ah_attr attributes{};
  std::int64_t host = -1;  ///< -1: nobody has this address
};

struct SendWork {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;
  std::uint32_t immediate = 0;  ///< or the key to invalidate
  std::uint64_t remote_address = 0, compare_add = 0, swap = 0;
  std::uint32_t rkey = 0;
  std::vector<ibv_sge> elements;
  std::vector<std::byte> inlined;
  bool is_inline = false;
  std::int64_t to_host = -1;  ///< datagrams
  std::uint32_t to_qp = 0, to_key = 0, to_srq = 0;
  std::uint8_t service_level = 0;
  struct {
    ibv_mw* window = nullptr;
    std::uint32_t rkey = 0;
    ibv_mw_bind_info info{};
  } bind;

  std::uint64_t length = 0;
  std::uint32_t message = 0;  ///< its number, given when it is first sent
  bool numbered = false, done = false;
  ibv_wc_status status = IBV_WC_SUCCESS;
  [[nodiscard]] bool reads() const {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
};

/// An answer that a responder owes, in the order of requests.
struct Answer {
  PacketKind kind = PacketKind::kAck;
  std::uint32_t message = 0, code = 0;
  std::uint64_t address = 0, length = 0, done = 0;  ///< of READs
  std::uint32_t key = 0;
  std::uint64_t value = 0;  ///< of atomics
};

struct Qp {
  ibv_qp_ex seen{};
  bool extended = false;
  Xrcd* domain = nullptr;  ///< of an XRC receiver
  ibv_qp_init_attr asked{};
  ibv_qp_attr attributes{};
  std::int64_t peer_host = -1;
  std::uint32_t async_given = 0;
  int openers = 1;  ///< XRC: ibv_open_qp

  // Requester: requests [0, next) are sent, the first of them is the oldest that is not complete.
  std::deque<SendWork> sends;
  std::size_t next = 0;
  std::uint64_t offset = 0;  ///< what of request `next` is sent
  std::uint32_t next_message = 0;
  std::size_t open_reads = 0;
  bool halted = false;          ///< an error waits for its turn to complete
  bool waiting = false;         ///< until `resume`
  bool fail_on_resume = false;  ///< no retry is left
  Clock::time_point resume{};
  int retries_left = 7, rnr_left = 7;

  // Responder.
  std::deque<ReceiveWork> receives;
  std::uint32_t expected = 0;   ///< number of the message that comes next
  std::uint64_t in_offset = 0;  ///< how much of it has come
  bool discarding = false;      ///< UC: the rest of a message that nobody takes
  bool has_receive = false;     ///< `receive` was taken for it
  ReceiveWork receive;
  Srq* receive_srq = nullptr;  ///< whose it was
  std::deque<Answer> answers;

  bool queued = false;            ///< in Nic::active
  std::recursive_mutex building;  ///< held from wr_start to wr_complete
  std::vector<SendWork> built;
  int build_error = 0;

  [[nodiscard]] ibv_qp& base() { return seen.qp_base; }
  [[nodiscard]] std::uint32_t number() const { return seen.qp_base.qp_num; }
  [[nodiscard]] ibv_qp_type type() const { return seen.qp_base.qp_type; }
  [[nodiscard]] bool connected() const { return type() != IBV_QPT_UD; }
  [[nodiscard]] bool reliable() const { return connected() && type() != IBV_QPT_UC; }
};

struct AsyncEvent {
  ibv_async_event event{};
};

struct Context {
  verbs_context seen{};
  Bell bell;
  std::deque<ibv_async_event> events;
  [[nodiscard]] ibv_context& base() { return seen.context; }
};

/// The object behind what a program holds.
template <typename Object, typename Seen>
Object& object_of(Seen* seen) {
  return *reinterpret_cast<Object*>(seen);
}
inline Context& context_of(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) -
                                     offsetof(verbs_context, context));
}

}  // namespace greynic::lab
