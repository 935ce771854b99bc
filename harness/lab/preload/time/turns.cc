#include "preload/time/turns.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "preload/nic.h"
#include "preload/time/clock.h"

namespace greynic::lab::turns {
namespace {

Turns* table = nullptr;
TurnSeat* seat = nullptr;
int memory_file = -1;
double clock_now = 0, spent = 0;
/// A program that reads clocks and asks for nothing waits for a time. It is taken along within this
/// time, or a share of how long it has waited, and each look takes longer the longer it waits.
constexpr double kApartNs = 10e3, kApartShare = 0.25, kLookShare = 1e-3, kLongestLookNs = 1e3;
double asked_at = 0;
std::recursive_mutex asking;
/// The signal of turns leaves alone who is about to ask.
volatile sig_atomic_t busy = 0;
struct Pages {
  std::uintptr_t begin, end;
};
std::map<std::uint32_t, Pages> pages_of;  ///< by key
std::map<std::uint32_t, Cq*> cqs;         ///< by handle

void put(std::uint32_t value) {
  seat->turn.store(value, std::memory_order_release);
  table->bell.fetch_add(1, std::memory_order_release);
  wake_on(table->bell);
}

void on_turn_signal(int) {
  if (busy != 0) return;
  const int error = errno;
  {
    Question question;
    question->number = 0;
    question.ask(Ask::kSpins);
  }
  errno = error;
}

/// The file's offsets are our addresses, so pages that touch need no care.
int move_pages(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t at = begin; at < end;) {
    const ssize_t done =
        pwrite(memory_file, reinterpret_cast<const void*>(at), end - at, static_cast<off_t>(at));
    if (done <= 0) return errno == 0 ? EFAULT : errno;
    at += static_cast<std::uintptr_t>(done);
  }
  const void* const mapped =
      mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED | MAP_POPULATE, memory_file, static_cast<off_t>(begin));
  return mapped == MAP_FAILED ? errno : 0;
}

ibv_wc_opcode opcode_of(std::uint32_t kind) {
  static constexpr std::array<ibv_wc_opcode, 9> kOpcodes = {
      IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
      IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD,  IBV_WC_BIND_MW,
      IBV_WC_LOCAL_INV, IBV_WC_RECV,       IBV_WC_RECV_RDMA_WITH_IMM};
  return kOpcodes[std::min<std::size_t>(kind, kOpcodes.size() - 1)];
}

/// Numbers of twin::WorkKind; -1: none of them.
int kind_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return 0;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return 1;
    case IBV_WR_RDMA_READ:
      return 2;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return 3;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return 4;
    default:
      return -1;
  }
}

void put_elements(const Question& question, const std::vector<ibv_sge>& elements) {
  question->work.elements = static_cast<std::uint32_t>(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    question->elements[i] = {elements[i].addr, elements[i].length, elements[i].lkey};
  }
}

}  // namespace

bool taken() { return seat != nullptr; }

bool join(std::uint32_t host) {
  const char* const path = std::getenv(kTurnsVariable);
  if (!path || seat) return true;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  void* const memory =
      fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  memory_file = memfd_create("greynic-lab-memory", MFD_CLOEXEC);
  if (memory == MAP_FAILED || memory_file < 0 || ftruncate(memory_file, off_t{1} << 47) != 0) {
    std::fprintf(stderr, "greynic lab: no virtual time here: %s\n", std::strerror(errno));
    return false;
  }
  table = static_cast<Turns*>(memory);
  TurnSeat* found = nullptr;
  for (TurnSeat& one : table->seats) {
    std::uint32_t free = 0;
    if (one.owner.compare_exchange_strong(free, static_cast<std::uint32_t>(getpid()))) {
      found = &one;
      break;
    }
  }
  if (!found) {
    std::fprintf(stderr, "greynic lab: no virtual time here: %zu processes are in it already\n",
                 kSeats);
    return false;
  }
  struct sigaction action {};
  action.sa_handler = on_turn_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(kTurnSignal, &action, nullptr);
  seat = found;
  Question question;
  question->host = host;
  question->number = static_cast<std::uint64_t>(memory_file);
  const int error = question.ask(Ask::kJoin);
  if (error == 0) start_clock();
  return error == 0;
}

Question::Question() : seat_(seat) {
  asking.lock();
  busy = busy + 1;
}
Question::~Question() {
  const bool alarm = std::exchange(seat_->alarm, false);
  busy = busy - 1;
  asking.unlock();
  if (alarm) raise(SIGALRM);
}

int Question::ask(Ask what) {
  seat_->ask = what;
  seat_->spent_ns = spent;
  spent = 0;
  put(TurnSeat::kAsked);
  std::uint32_t seen = 0;
  while ((seen = seat_->turn.load(std::memory_order_acquire)) != TurnSeat::kAnswered) {
    wait_on(seat_->turn, seen, nullptr);
  }
  seat_->turn.store(TurnSeat::kIdle, std::memory_order_relaxed);
  clock_now = asked_at = seat_->clock_ns;
  return seat_->error;
}

double clock_ns(double cost_ns) {
  const double apart = clock_now + spent - asked_at;
  spent += std::max(cost_ns, std::min(apart * kLookShare, kLongestLookNs));
  seat->looks.fetch_add(1, std::memory_order_relaxed);
  if (busy == 0 && spent > std::max(kApartNs, apart * kApartShare)) {
    const double before = asked_at;
    Question().ask(Ask::kPasses);
    asked_at = before;
  }
  return clock_now + spent;
}

int create_cq(Cq& cq) {
  Question question;
  question->cq = cq.seen.handle;
  question->number = cq.capacity;
  question->channel = cq.seen.channel ? object_of<EventChannel>(cq.seen.channel).number : 0;
  const int error = question.ask(Ask::kCreateCq);
  if (error == 0) cqs[cq.seen.handle] = &cq;
  return error;
}

int destroy_cq(const Cq& cq) {
  Question question;
  question->cq = cq.seen.handle;
  cqs.erase(cq.seen.handle);
  return question.ask(Ask::kDestroyCq);
}

int arm(const Cq& cq) {
  Question question;
  question->cq = cq.seen.handle;
  return question.ask(Ask::kArm);
}

Cq& wait_event(const EventChannel& channel) {
  for (;;) {
    Question question;
    question->channel = channel.number;
    if (question.ask(Ask::kWaitEvent) != 0) continue;  // an alarm is on its way
    return *cqs.at(question->cq);
  }
}

int create_srq(const Srq& srq) {
  Question question;
  question->srq = srq.seen.handle;
  question->number = srq.depth;
  return question.ask(Ask::kCreateSrq);
}

int destroy_srq(const Srq& srq) {
  Question question;
  question->srq = srq.seen.handle;
  return question.ask(Ask::kDestroySrq);
}

int add_memory(std::uint32_t key, void* address, std::size_t length, std::uint64_t begin,
               unsigned access) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const Pages whole{first & ~(page - 1), (first + length + page - 1) & ~(page - 1)};
  Question question;
  // What is the lab's already stays where it is.
  std::uintptr_t at = whole.begin;
  while (at < whole.end) {
    std::uintptr_t next = whole.end;
    bool inside = false;
    for (const auto& [other, pages] : pages_of) {
      if (pages.begin <= at && at < pages.end) {
        inside = true;
        next = std::min(whole.end, pages.end);
        break;
      }
      if (pages.begin > at) next = std::min(next, pages.begin);
    }
    if (!inside) {
      if (const int error = move_pages(at, next)) return error;
    }
    at = next;
  }
  question->key = key;
  question->address = first;
  question->number = begin;
  question->length = length;
  question->access = access & 15U;
  const int error = question.ask(Ask::kRegister);
  if (error == 0) pages_of[key] = whole;
  return error;
}

int drop_memory(std::uint32_t key) {
  Question question;
  question->key = key;
  pages_of.erase(key);
  return question.ask(Ask::kDeregister);
}

namespace {

std::uint32_t transport_of(const Qp& qp) {
  return qp.type() == IBV_QPT_UC ? 1 : qp.type() == IBV_QPT_UD ? 2 : 0;
}

int post_receive(Question& question, const ReceiveWork& work) {
  if (work.elements.size() > kTurnElements) return EINVAL;
  question->work.id = work.id;
  put_elements(question, work.elements);
  return question.ask(Ask::kPostReceive);
}

}  // namespace

int create_qp(const Qp& qp) {
  Question question;
  question->qp = qp.number();
  question->cq = object_of<Cq>(qp.seen.qp_base.send_cq).seen.handle;
  question->receive_cq = object_of<Cq>(qp.seen.qp_base.recv_cq).seen.handle;
  const ibv_qp_cap& cap = qp.asked.cap;
  question->srq = qp.seen.qp_base.srq ? qp.seen.qp_base.srq->handle : 0;
  question->shape = {transport_of(qp), cap.max_send_wr,  cap.max_recv_wr,
                     cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data};
  return question.ask(Ask::kCreateQp);
}

int modify_qp(const Qp& qp) {
  // Numbers of twin::QpState; the fabric knows no draining of send queues.
  static constexpr std::array<std::uint64_t, 4> kStates = {0, 1, 2, 3};
  const ibv_qp_state state = qp.seen.qp_base.state;
  const ibv_qp_attr& own = qp.attributes;
  Question question;
  question->qp = qp.number();
  question->number = state == IBV_QPS_ERR ? 4 : kStates[std::min<std::size_t>(state, 3)];
  question->access = static_cast<std::uint32_t>(own.qp_access_flags) & 15U;
  question->shape.transport = transport_of(qp);
  const std::uint32_t mtu = !qp.connected()     ? Nic::port_mtu_bytes()
                            : own.path_mtu == 0 ? 1024U
                                                : 128U << own.path_mtu;
  question->path = {static_cast<std::uint32_t>(std::max<std::int64_t>(0, qp.peer_host)),
                    own.dest_qp_num,
                    mtu,
                    own.timeout,
                    own.retry_cnt,
                    own.rnr_retry,
                    own.min_rnr_timer,
                    std::max<std::uint32_t>(1, own.max_rd_atomic)};
  return question.ask(Ask::kModifyQp);
}

int destroy_qp(const Qp& qp) {
  Question question;
  question->qp = qp.number();
  return question.ask(Ask::kDestroyQp);
}

int post_send(const Qp& qp, const SendWork& work) {
  const int kind = kind_of(work.opcode);
  if (kind < 0 || work.elements.size() > kTurnElements || work.inlined.size() > kTurnInline) {
    return EINVAL;
  }
  Question question;
  question->qp = qp.number();
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  question->work = {work.id,
                    work.remote_address,
                    work.compare_add,
                    work.swap,
                    static_cast<std::uint32_t>(kind),
                    work.rkey,
                    work.immediate,
                    static_cast<std::uint32_t>(work.to_host),  // -1: nobody
                    work.to_qp,
                    qp.asked.sq_sig_all != 0 || (work.flags & IBV_SEND_SIGNALED) != 0,
                    work.is_inline,
                    immediate,
                    0};
  if (work.is_inline) {
    std::ranges::copy(work.inlined, question->inlined.begin());
    question->length = work.inlined.size();
  } else {
    put_elements(question, work.elements);
  }
  return question.ask(Ask::kPostSend);
}

int post_receive(const Qp& qp, const ReceiveWork& work) {
  Question question;
  question->qp = qp.number();
  return post_receive(question, work);
}

int post_receive(const Srq& srq, const ReceiveWork& work) {
  Question question;
  question->qp = 0;
  question->srq = srq.seen.handle;
  return post_receive(question, work);
}

int poll(const Cq& cq, int most, ibv_wc* out) {
  Question question;
  question->cq = cq.seen.handle;
  question->number =
      static_cast<std::uint64_t>(std::clamp(most, 0, static_cast<int>(kTurnCompletions)));
  if (question.ask(Ask::kPoll) != 0) return -1;
  for (int i = 0; i < question->count; ++i) {
    const TurnCompletion& from = question->completions[static_cast<std::size_t>(i)];
    ibv_wc& wc = out[i];
    wc = {};
    wc.wr_id = from.id;
    wc.status = static_cast<ibv_wc_status>(from.status);
    wc.opcode = opcode_of(from.kind);
    wc.byte_len = static_cast<std::uint32_t>(from.bytes);
    wc.qp_num = from.qp;
    wc.imm_data = from.immediate;
    if (from.from_qp != 0) {  // a datagram: the room for its routing header counts
      static constexpr std::uint32_t kRoutingHeaderBytes = 40;
      wc.src_qp = from.from_qp;
      wc.slid = static_cast<std::uint16_t>(from.from_host + 1);
      wc.byte_len += kRoutingHeaderBytes;
    }
    if (from.has_immediate) wc.wc_flags |= IBV_WC_WITH_IMM;
  }
  return question->count;
}

}  // namespace greynic::lab::turns
