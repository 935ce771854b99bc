#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "run/sequencer.h"

/// What programs ask for, done on the fabric: their names for objects become the fabric's.

namespace greynic::lab {
namespace {

constexpr std::uint32_t kPageBytes = 4096;
constexpr std::uint32_t kNoKey = 0xFFFFFFFF;

template <typename Value>
int error_of(const Result<Value>& result) {
  return result ? 0 : EINVAL;
}

}  // namespace

/// Objects, and posting.
bool Sequencer::grant_data(Process& process) {
  TurnSeat& seat = *process.seat;
  const auto done = [&]() -> int {
    switch (seat.ask) {
      case Ask::kJoin:
        return join(process);
      case Ask::kCreateCq:
        return create_cq(process);
      case Ask::kDestroyCq:
        return destroy_cq(process);
      case Ask::kCreateSrq:
        return create_srq(process);
      case Ask::kDestroySrq:
        return destroy_srq(process);
      case Ask::kRegister:
        return add_memory(process);
      case Ask::kDeregister:
        return drop_memory(process, seat.key);
      case Ask::kCreateQp:
        return create_qp(process);
      case Ask::kModifyQp:
        return modify_qp(process);
      case Ask::kDestroyQp:
        return destroy_qp(process);
      case Ask::kPostSend:
        return post_send(process);
      case Ask::kPostReceive:
        return post_receive(process);
      default:
        return 0;
    }
  };
  answer(process, done());
  return true;
}

int Sequencer::join(Process& process) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process.pid, process.seat->number);
  process.file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (process.file < 0) return errno;
  const auto domain = fabric_->create_domain(process.host);
  if (domain) process.domain = *domain;
  return error_of(domain);
}

int Sequencer::create_cq(Process& process) {
  const std::uint32_t name = process.seat->cq;
  twin::CqSpec spec;
  spec.depth = static_cast<std::uint32_t>(process.seat->number);
  spec.on_event = [this, &process, name] { completed(process, name); };
  const auto cq = fabric_->create_cq(process.host, spec);
  if (!cq) return EINVAL;
  process.queues[name] = {.id = *cq, .channel = process.seat->channel};
  fabric_->arm(*cq);
  return 0;
}

int Sequencer::destroy_cq(Process& process) {
  const auto found = process.queues.find(process.seat->cq);
  if (found == process.queues.end()) return EINVAL;
  const int error = error_of(fabric_->destroy(found->second.id));
  if (error != 0) return error;
  for (auto& [channel, events] : process.events) std::erase(events, found->first);
  process.queues.erase(found);
  return 0;
}

int Sequencer::create_srq(Process& process) {
  const auto srq =
      fabric_->create_srq(process.domain, static_cast<std::uint32_t>(process.seat->number));
  if (srq) process.srqs[process.seat->srq] = *srq;
  return error_of(srq);
}

int Sequencer::destroy_srq(Process& process) {
  const auto found = process.srqs.find(process.seat->srq);
  if (found == process.srqs.end()) return EINVAL;
  const int error = error_of(fabric_->destroy(found->second));
  if (error == 0) process.srqs.erase(found);
  return error;
}

int Sequencer::add_memory(Process& process) {
  const TurnSeat& seat = *process.seat;
  Memory memory;
  const std::uint64_t page = seat.address / kPageBytes * kPageBytes;
  memory.mapped_bytes = seat.address - page + seat.length;
  void* const mapped = mmap(nullptr, memory.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            process.file, static_cast<off_t>(page));
  if (mapped == MAP_FAILED) return errno;
  memory.mapped = static_cast<std::byte*>(mapped);
  memory.begin = seat.number;
  const std::span bytes(memory.mapped + (seat.address - page), seat.length);
  const auto region = fabric_->register_memory(process.domain, bytes,
                                               static_cast<std::uint8_t>(seat.access & 15U));
  if (!region) {
    munmap(mapped, memory.mapped_bytes);
    return EINVAL;
  }
  memory.region = *region;
  memory.first = fabric_->region_address(*region);
  process.memory[seat.key] = memory;
  return error_of(fabric_->watch(*region, 0, [this, &process](std::uint64_t) {
    if (process.state != State::kSpinning) return;
    fabric_->spend(process.host, kSpinNs);
    process.state = State::kReady;
    take_turn(process);
  }));
}

int Sequencer::drop_memory(Process& process, std::uint32_t key) {
  const auto found = process.memory.find(key);
  if (found == process.memory.end()) return EINVAL;
  const Memory memory = found->second;
  process.memory.erase(found);
  const int error = error_of(fabric_->destroy(memory.region));
  munmap(memory.mapped, memory.mapped_bytes);
  return error;
}

int Sequencer::create_qp(Process& process) {
  const TurnSeat& seat = *process.seat;
  const auto sends = process.queues.find(seat.cq), receives = process.queues.find(seat.receive_cq);
  const auto srq = process.srqs.find(seat.srq);
  if (sends == process.queues.end() || receives == process.queues.end() ||
      (seat.srq != 0 && srq == process.srqs.end())) {
    return EINVAL;
  }
  static constexpr std::array kTransports = {Transport::kRC, Transport::kUC, Transport::kUD};
  const auto qp = fabric_->create_qp(
      {.transport = kTransports.at(seat.shape.transport),
       .domain = process.domain,
       .send_cq = sends->second.id,
       .receive_cq = receives->second.id,
       .srq = seat.srq != 0 ? srq->second : twin::SrqId{},
       .send_depth = std::max(1U, seat.shape.send_depth),
       .receive_depth = std::max(1U, seat.shape.receive_depth),
       .send_elements = std::max(1U, seat.shape.send_elements),
       .receive_elements = std::max(1U, seat.shape.receive_elements),
       .inline_bytes = seat.shape.inline_bytes});
  if (!qp) return EINVAL;
  process.qps[seat.qp] = *qp;
  numbers_[qp->id] = seat.qp;
  return 0;
}

Sequencer::Process* Sequencer::owner_of(std::uint32_t qp) {
  for (Process& process : processes_) {
    if (process.qps.contains(qp)) return &process;
  }
  return nullptr;
}

int Sequencer::modify_qp(Process& process) {
  const TurnSeat& seat = *process.seat;
  const auto found = process.qps.find(seat.qp);
  if (found == process.qps.end()) return EINVAL;
  const auto to = static_cast<twin::QpState>(seat.number);
  twin::QpAttributes attributes;
  attributes.access = static_cast<std::uint8_t>(seat.access);
  attributes.mtu_bytes = seat.path.mtu_bytes;
  const bool connects = seat.shape.transport != 2;
  if (connects && (to == twin::QpState::kReadyToReceive || to == twin::QpState::kReadyToSend)) {
    Process* const peer = owner_of(seat.path.peer_qp);
    if (!peer || peer->host != seat.path.peer_host) return EINVAL;
    process.peers[seat.qp] = seat.path.peer_qp;
    attributes.peer_host = peer->host;
    attributes.peer_qp = peer->qps.at(seat.path.peer_qp).id;
    attributes.ack_timeout = seat.path.ack_timeout;
    attributes.retry_count = seat.path.retry_count;
    attributes.rnr_retry = seat.path.rnr_retry;
    attributes.min_rnr_timer = seat.path.min_rnr_timer;
    attributes.most_reads = seat.path.most_reads;
  }
  return error_of(fabric_->modify(found->second, to, attributes));
}

int Sequencer::destroy_qp(Process& process) {
  const auto found = process.qps.find(process.seat->qp);
  if (found == process.qps.end()) return EINVAL;
  const int error = error_of(fabric_->destroy(found->second));
  numbers_.erase(found->second.id);
  process.peers.erase(found->first);
  process.qps.erase(found);
  return error;
}

/// Keys that are none stay so: the fabric says what that means.
std::vector<twin::Sge> Sequencer::elements_of(const Process& process) const {
  const TurnSeat& seat = *process.seat;
  std::vector<twin::Sge> elements;
  const std::size_t count = std::min<std::size_t>(seat.work.elements, kTurnElements);
  for (const TurnElement& from : std::span(seat.elements).first(count)) {
    const auto found = process.memory.find(from.key);
    const bool known = found != process.memory.end();
    elements.push_back(
        {known ? from.address - found->second.begin + found->second.first : from.address,
         from.bytes, known ? fabric_->key(found->second.region) : kNoKey});
  }
  return elements;
}

/// Where the request goes: memory of the QP at the other end or, of a datagram, a QP of a host.
void Sequencer::address(Process& process, twin::SendRequest& request) {
  const TurnSeat& seat = *process.seat;
  if (seat.work.to_qp != 0) {
    const Process* const to = owner_of(seat.work.to_qp);
    const twin::HostId host = to != nullptr ? to->host : process.host;
    auto handle = process.handles.find(host);
    if (handle == process.handles.end()) {
      const auto made = fabric_->create_address_handle(process.domain, host);
      if (!made) return;
      handle = process.handles.emplace(host, *made).first;
    }
    request.to = handle->second;
    // A datagram to a QP of no host, or of another than it names, is lost.
    if (to != nullptr && host == seat.work.to_host) {
      request.to_qp = to->qps.at(seat.work.to_qp).id;
    }
    return;
  }
  const auto peer_qp = process.peers.find(seat.qp);
  const Process* const peer = peer_qp == process.peers.end() ? nullptr : owner_of(peer_qp->second);
  if (peer == nullptr) return;
  if (const auto at = peer->memory.find(seat.work.rkey); at != peer->memory.end()) {
    request.rkey = fabric_->key(at->second.region);
    request.remote_address += at->second.first - at->second.begin;
  }
}

int Sequencer::post_send(Process& process) {
  const TurnSeat& seat = *process.seat;
  const auto found = process.qps.find(seat.qp);
  if (found == process.qps.end()) return EINVAL;
  std::vector<twin::Sge> elements;
  if (!seat.work.inlined) {
    elements = elements_of(process);
  } else if (seat.length > 0) {
    elements.push_back({reinterpret_cast<std::uint64_t>(seat.inlined.data()),
                        static_cast<std::uint32_t>(std::min(seat.length, kTurnInline)), 0});
  }
  twin::SendRequest request;
  request.id = seat.work.id;
  request.kind = static_cast<twin::WorkKind>(seat.work.kind);
  request.elements = elements;
  request.rkey = kNoKey;
  request.remote_address = seat.work.remote_address;
  address(process, request);
  request.signaled = seat.work.signaled;
  request.inlined = seat.work.inlined;
  request.has_immediate = seat.work.has_immediate;
  request.immediate = seat.work.immediate;
  request.compare_add = seat.work.compare_add;
  request.swap = seat.work.swap;
  return fabric_->post_send(found->second, std::span(&request, 1)).error;
}

int Sequencer::post_receive(Process& process) {
  const std::vector<twin::Sge> elements = elements_of(process);
  const twin::ReceiveRequest request{process.seat->work.id, elements};
  if (process.seat->qp == 0) {
    const auto srq = process.srqs.find(process.seat->srq);
    if (srq == process.srqs.end()) return EINVAL;
    return fabric_->post_receive(srq->second, std::span(&request, 1)).error;
  }
  const auto found = process.qps.find(process.seat->qp);
  if (found == process.qps.end()) return EINVAL;
  return fabric_->post_receive(found->second, std::span(&request, 1)).error;
}

}  // namespace greynic::lab
