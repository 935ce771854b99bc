#pragma once

/// Virtual time: programs of a lab take turns. The sequencer (run/sequencer.h) owns the twin's
/// fabric and this memory; each process has a seat in it. A process that runs asks for one thing at
/// a time and waits for the answer, so nothing happens on the fabric while a program computes, and
/// only one program computes at any virtual time. Memory that a program registers becomes pages of
/// a file of its own, whose offsets are its addresses: the fabric reads and writes the same pages.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace greynic::lab {

/// Environment of programs in virtual time: where the memory of turns can be opened.
inline constexpr const char* kTurnsVariable = "GREYNIC_LAB_TURNS";
/// Sent to a program that computes and asks for nothing: it asks kSpins, and so stands still while
/// time goes on. A real-time signal that nobody uses.
inline constexpr int kTurnSignal = 61;

enum class Ask : std::uint32_t {
  kJoin,        ///< `number`: the descriptor of the file behind registered memory
  kCreateCq,    ///< `cq`, `number`: its depth, `channel`
  kDestroyCq,   ///< `cq`
  kArm,         ///< `cq`: the next completion is an event of its channel
  kWaitEvent,   ///< `channel`. Answered with the `cq` of an event
  kCreateSrq,   ///< `srq`, `number`: its depth
  kDestroySrq,  ///< `srq`
  kRegister,    ///< `key`, `address`, `length`, `access`, `number`: what peers call the address
  kDeregister,  ///< `key`
  kCreateQp,    ///< `qp`, `cq`, `receive_cq`, `shape`
  kModifyQp,    ///< `qp`, `number`: twin::QpState, `path`
  kDestroyQp,   ///< `qp`
  kPostSend,    ///< `qp`, `work`, `elements`, `inlined`
  kPostReceive, ///< `qp` or, where that is 0, `srq`; `work.id`, `elements`
  kPoll,        ///< `cq`, `number`: at most. Answered with `completions` when there are some
  kSleep,       ///< `number` ns
  kAlarm,       ///< `number` s from now: an answer with `alarm`; 0: none
  kBlocks,      ///< the process is about to wait for something outside the lab
  kAwake,       ///< and has come back
  kWrote,       ///< it wrote to others outside the lab, who may wake up
  kPasses,      ///< it reads clocks, which took the time it spent
  kSpins,       ///< it computes, or looks at memory again and again
};

struct TurnElement {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0, key = 0;
};

struct TurnCompletion {
  std::uint64_t id = 0, bytes = 0;
  std::uint32_t status = 0, kind = 0;  ///< twin::WcStatus and twin::WorkKind
  std::uint32_t qp = 0, immediate = 0;
  std::uint32_t from_qp = 0, from_host = 0;  ///< of datagrams
  bool has_immediate = false;
};

inline constexpr std::size_t kTurnElements = 32, kTurnCompletions = 64, kTurnInline = 1024;
inline constexpr std::size_t kSeats = 8;

/// Where a process and the sequencer meet.
struct alignas(64) TurnSeat {
  enum : std::uint32_t { kIdle, kAsked, kAnswered };
  std::atomic<std::uint32_t> owner{0};  ///< process id; 0: free
  std::atomic<std::uint32_t> turn{kIdle};
  std::atomic<std::uint32_t> looks{0};  ///< at clocks

  Ask ask{};
  std::uint32_t host = 0;
  double spent_ns = 0;  ///< what the program did since the last answer
  std::uint64_t number = 0, address = 0, length = 0;
  std::uint32_t cq = 0, receive_cq = 0, srq = 0, channel = 0, qp = 0, key = 0, access = 0;
  struct {
    std::uint32_t transport = 0;  ///< 0 RC, 1 UC, 2 UD
    std::uint32_t send_depth = 0, receive_depth = 0, send_elements = 0, receive_elements = 0;
    std::uint32_t inline_bytes = 0;
  } shape;
  struct {
    std::uint32_t peer_host = 0, peer_qp = 0, mtu_bytes = 0;
    std::int32_t ack_timeout = 0, retry_count = 0, rnr_retry = 0, min_rnr_timer = 0;
    std::uint32_t most_reads = 0;
  } path;
  struct {
    std::uint64_t id = 0, remote_address = 0, compare_add = 0, swap = 0;
    std::uint32_t kind = 0, rkey = 0, immediate = 0;
    std::uint32_t to_host = 0, to_qp = 0;  ///< of datagrams
    bool signaled = false, inlined = false, has_immediate = false;
    std::uint32_t elements = 0;
  } work;
  std::array<TurnElement, kTurnElements> elements{};
  std::array<std::byte, kTurnInline> inlined{};

  // The answer.
  double clock_ns = 0;  ///< of the program's thread
  std::int32_t error = 0, count = 0;
  bool alarm = false;  ///< the timer of alarm() ran out
  std::array<TurnCompletion, kTurnCompletions> completions{};
};

struct Turns {
  std::atomic<std::uint32_t> bell{0};  ///< counts what was asked
  std::array<TurnSeat, kSeats> seats;
};

inline void wait_on(std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* most) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, most, nullptr, 0);
}
inline void wake_on(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace greynic::lab
