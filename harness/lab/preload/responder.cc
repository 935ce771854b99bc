#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "preload/gid.h"
#include "preload/nic.h"

namespace greynic::lab {
namespace {

bool has(const Packet& packet, std::uint16_t flag) { return (packet.flags & flag) != 0; }

bool speaks_to(std::uint8_t sender, ibv_qp_type receiver) {
  if (sender == IBV_QPT_XRC_SEND) return receiver == IBV_QPT_XRC_RECV;
  return sender == receiver;
}

bool is_atomic(PacketKind kind) {
  return kind == PacketKind::kCompareSwap || kind == PacketKind::kFetchAdd;
}

constexpr std::uint32_t kRoutingHeaderBytes = 40;

/// What stands before each datagram in the receiver's memory.
std::array<std::byte, kRoutingHeaderBytes> routing_header(const Packet& packet,
                                                          std::uint32_t network) {
  std::array<std::byte, kRoutingHeaderBytes> header{};
  const std::uint32_t first = htonl(6U << 28);
  const std::uint16_t length = htons(static_cast<std::uint16_t>(packet.length));
  std::memcpy(header.data(), &first, sizeof first);
  std::memcpy(header.data() + 4, &length, sizeof length);
  header[6] = std::byte{0x1B};  // what follows is InfiniBand transport
  header[7] = std::byte{64};
  const Gid from = address_gid(network, packet.from_host);
  const Gid to = address_gid(network, packet.to_host);
  std::memcpy(header.data() + 8, &from, sizeof from);
  std::memcpy(header.data() + 24, &to, sizeof to);
  return header;
}

}  // namespace

void Nic::owe(Qp& qp, const Answer& what) {
  if (!qp.reliable()) return;
  if (what.kind == PacketKind::kAck && !qp.answers.empty() &&
      qp.answers.back().kind == PacketKind::kAck) {
    qp.answers.back().message = what.message;  // one tells of all before it
  } else {
    qp.answers.push_back(what);
  }
  activate(qp);
}

/// The request is refused: the requester learns why, and this QP goes to the error state.
void Nic::refuse(Qp& qp, const Packet& packet, ibv_wc_status status) {
  if (!qp.reliable()) {
    qp.discarding = !has(packet, packet_flag::kLast);
    qp.expected = packet.message + 1;
    qp.in_offset = 0;
    return;
  }
  owe(qp, {.kind = PacketKind::kNak,
           .message = packet.message,
           .code = static_cast<std::uint32_t>(status)});
  if (status != IBV_WC_REM_OP_ERR) {
    tell(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
         context_of(qp.base().context), &qp.base());
  }
  fail(qp);
}

/// Nobody takes the packet.
void Nic::drop(const Packet& packet) {
  const bool reliable = packet.transport != IBV_QPT_UD && packet.transport != IBV_QPT_UC;
  if (!reliable || packet.offset != 0) return;
  Packet notice;
  notice.kind = PacketKind::kDropped;
  notice.to_qp = packet.from_qp;
  notice.from_qp = packet.to_qp;
  notice.message = packet.message;
  orphans_.push_back(notice);
}

void Nic::on_request(const Packet& packet) {
  const auto found = qps.find(packet.to_qp);
  if (packet.to_host != host || found == qps.end()) return drop(packet);
  Qp& qp = *found->second;
  const ibv_qp_state state = qp.base().state;
  const bool ready = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
  if (!ready || !speaks_to(packet.transport, qp.type())) return drop(packet);
  if (!qp.connected()) return on_datagram(qp, packet);
  if (packet.from_qp != qp.attributes.dest_qp_num) return drop(packet);

  if (!qp.reliable()) {
    if (packet.offset == 0) {  // what was before is whole or lost
      qp.discarding = false;
      qp.expected = packet.message;
      qp.in_offset = 0;
    }
    if (qp.discarding) return;
  }
  if (packet.message != qp.expected) return;  // of an attempt that was given up
  if (packet.offset == 0) qp.in_offset = 0;
  if (packet.offset != qp.in_offset) return;
  switch (packet.kind) {
    case PacketKind::kSend:
      return on_send(qp, packet);
    case PacketKind::kWrite:
      return on_write(qp, packet);
    default:
      return on_fetch(qp, packet);
  }
}

/// Takes a receive for a message that begins. False: there is none, and the requester is told.
bool Nic::find_receive(Qp& qp, const Packet& packet) {
  if (qp.has_receive) return true;
  Srq* srq = qp.base().srq ? &object_of<Srq>(qp.base().srq) : nullptr;
  if (qp.type() == IBV_QPT_XRC_RECV) {
    const auto found = srqs.find(packet.srq);
    if (found == srqs.end() || found->second->domain != qp.domain) {
      refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR);
      return false;
    }
    srq = found->second;
  }
  if (take_receive(qp, srq, qp.receive)) {
    qp.has_receive = true;
    qp.receive_srq = srq;
    return true;
  }
  qp.discarding = true;
  owe(qp, {.kind = PacketKind::kNotReady,
           .message = packet.message,
           .code = qp.attributes.min_rnr_timer});
  return false;
}

/// The receive that was taken completes.
void Nic::receive_done(Qp& qp, const Packet& packet, ibv_wc_status status) {
  qp.has_receive = false;
  ibv_wc wc{};
  wc.wr_id = qp.receive.id;
  wc.status = status;
  wc.opcode = packet.kind == PacketKind::kWrite ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  wc.byte_len = static_cast<std::uint32_t>(packet.length);
  wc.qp_num = qp.number();
  wc.src_qp = packet.from_qp;
  wc.sl = packet.service_level;
  if (!qp.connected()) {
    wc.byte_len += kRoutingHeaderBytes;
    wc.wc_flags |= IBV_WC_GRH;
    wc.slid = static_cast<std::uint16_t>(packet.from_host + 1);
  }
  if (has(packet, packet_flag::kImmediate)) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = packet.immediate;
  } else if (has(packet, packet_flag::kInvalidate)) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = packet.immediate;
  }
  Cq* const cq =
      qp.receive_srq && qp.receive_srq->cq ? qp.receive_srq->cq : &object_of<Cq>(qp.base().recv_cq);
  complete(*cq, wc, has(packet, packet_flag::kSolicited));
}

void Nic::advance(Qp& qp, const Packet& packet) {
  qp.in_offset += packet.payload;
  if (!has(packet, packet_flag::kLast)) return;
  qp.in_offset = 0;
  ++qp.expected;
}

void Nic::on_send(Qp& qp, const Packet& packet) {
  if (!find_receive(qp, packet)) return;
  Pd* const pd = qp.receive_srq ? object_of<Pd>(qp.receive_srq->seen.pd).whole()
                                : object_of<Pd>(qp.base().pd).whole();
  std::uint64_t room = 0;
  for (const ibv_sge& element : qp.receive.elements) room += element.length;
  if (packet.length > room) {
    receive_done(qp, packet, IBV_WC_LOC_LEN_ERR);
    refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR);
    return fail(qp);
  }
  if (!scatter(qp.receive.elements, pd, packet.offset, packet.data(), packet.payload)) {
    receive_done(qp, packet, IBV_WC_LOC_PROT_ERR);
    refuse(qp, packet, IBV_WC_REM_OP_ERR);
    return fail(qp);
  }
  if (has(packet, packet_flag::kInvalidate) && !invalidate(qp, packet.immediate)) {
    return refuse(qp, packet, IBV_WC_REM_ACCESS_ERR);
  }
  advance(qp, packet);
  if (!has(packet, packet_flag::kLast)) return;
  owe(qp, {.kind = PacketKind::kAck, .message = packet.message});
  receive_done(qp, packet, IBV_WC_SUCCESS);
}

std::byte* Nic::remote_memory(Qp& qp, const Packet& packet, std::uint64_t address,
                              std::uint64_t length, unsigned access, bool& nothing) {
  nothing = false;
  if ((qp.attributes.qp_access_flags & access) != access) return nullptr;
  Pd* const pd = qp.base().pd ? object_of<Pd>(qp.base().pd).whole() : nullptr;
  if (qp.type() == IBV_QPT_XRC_RECV) {
    // Its memory is that of the SRQ's domain, or of any: it has none of its own.
    const MemoryEntry* const entry = entry_of(packet.key);
    return entry ? reach(packet.key, address, length, access, entry->pd, &qp, nothing) : nullptr;
  }
  return reach(packet.key, address, length, access, pd, &qp, nothing);
}

void Nic::on_write(Qp& qp, const Packet& packet) {
  const bool immediate = has(packet, packet_flag::kImmediate);
  bool nothing = false;
  if (packet.length > 0) {
    std::byte* const to = remote_memory(qp, packet, packet.address + packet.offset,
                                        packet.offset == 0 ? packet.length : packet.payload,
                                        IBV_ACCESS_REMOTE_WRITE, nothing);
    if (!to && !nothing) return refuse(qp, packet, IBV_WC_REM_ACCESS_ERR);
    if (immediate && !find_receive(qp, packet)) return;
    if (to && packet.payload > 0) {
      std::memcpy(to, packet.data(), packet.payload - 1);
      const auto last = std::to_integer<unsigned char>(packet.data()[packet.payload - 1]);
      __atomic_store_n(reinterpret_cast<unsigned char*>(to) + packet.payload - 1, last,
                       __ATOMIC_RELEASE);
    }
  } else if (immediate && !find_receive(qp, packet)) {
    return;
  }
  advance(qp, packet);
  if (!has(packet, packet_flag::kLast)) return;
  owe(qp, {.kind = PacketKind::kAck, .message = packet.message});
  if (immediate) receive_done(qp, packet, IBV_WC_SUCCESS);
}

void Nic::on_fetch(Qp& qp, const Packet& packet) {
  const bool atomic = is_atomic(packet.kind);
  const std::uint64_t length = atomic ? sizeof(std::uint64_t) : packet.length;
  if (!qp.reliable() || (atomic && packet.address % sizeof(std::uint64_t) != 0)) {
    return refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR);
  }
  bool nothing = length == 0;
  std::byte* const at =
      length == 0
          ? nullptr
          : remote_memory(qp, packet, packet.address, length,
                          atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ, nothing);
  if (!at && !nothing) return refuse(qp, packet, IBV_WC_REM_ACCESS_ERR);
  Answer answer{.kind = PacketKind::kReadAnswer,
                .message = packet.message,
                .address = packet.address,
                .length = packet.length,
                .key = packet.key};
  if (atomic) {
    answer.kind = PacketKind::kAtomicAnswer;
    auto* const word = reinterpret_cast<std::uint64_t*>(at);
    if (word && packet.kind == PacketKind::kFetchAdd) {
      answer.value = __atomic_fetch_add(word, packet.compare_add, __ATOMIC_SEQ_CST);
    } else if (word) {
      answer.value = packet.compare_add;
      __atomic_compare_exchange_n(word, &answer.value, packet.swap, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
    }
  }
  advance(qp, packet);
  owe(qp, answer);
}

void Nic::on_datagram(Qp& qp, const Packet& packet) {
  if (packet.qp_key != qp.attributes.qkey) return;
  Srq* const srq = qp.base().srq ? &object_of<Srq>(qp.base().srq) : nullptr;
  if (!take_receive(qp, srq, qp.receive)) return;
  qp.receive_srq = srq;
  Pd* const pd = object_of<Pd>(srq ? srq->seen.pd : qp.base().pd).whole();
  std::uint64_t room = 0;
  for (const ibv_sge& element : qp.receive.elements) room += element.length;
  if (packet.length + kRoutingHeaderBytes > room) {
    receive_done(qp, packet, IBV_WC_LOC_LEN_ERR);
    return fail(qp);
  }
  const auto header = routing_header(packet, network);
  const bool there = scatter(qp.receive.elements, pd, 0, header.data(), header.size()) &&
                     scatter(qp.receive.elements, pd, header.size(), packet.data(), packet.payload);
  receive_done(qp, packet, there ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
  if (!there) fail(qp);
}

/// A packet of the answer that comes first. False: the ring is full.
bool Nic::send_answer(Qp& qp, Answer& answer, Peer& to) {
  const bool reading = answer.kind == PacketKind::kReadAnswer;
  const std::uint64_t left = reading ? answer.length - answer.done
                             : answer.kind == PacketKind::kAtomicAnswer ? sizeof answer.value
                                                                        : 0;
  const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kChunkBytes));
  Packet* const packet = reserve(to, payload);
  if (!packet) return false;
  packet->kind = answer.kind;
  packet->to_qp = qp.attributes.dest_qp_num;
  packet->from_qp = qp.number();
  packet->message = answer.message;
  packet->code = answer.code;
  packet->offset = answer.done;
  if (answer.kind == PacketKind::kAtomicAnswer) {
    std::memcpy(packet->data(), &answer.value, sizeof answer.value);
  } else if (payload > 0) {
    bool nothing = false;
    Packet request;
    request.key = answer.key;
    const std::byte* const from = remote_memory(qp, request, answer.address + answer.done, payload,
                                                IBV_ACCESS_REMOTE_READ, nothing);
    if (!from && !nothing) {  // deregistered meanwhile; the packet is not published
      answer = {.kind = PacketKind::kNak, .message = answer.message, .code = IBV_WC_REM_ACCESS_ERR};
      return send_answer(qp, answer, to);
    }
    if (from) {
      std::memcpy(packet->data(), from, payload);
    } else {
      std::memset(packet->data(), 0, payload);
    }
  }
  answer.done += payload;
  if (payload == left) packet->flags = packet_flag::kLast;
  publish(to, *packet);
  return true;
}

bool Nic::answer(Qp& qp) {
  if (qp.answers.empty()) return true;
  Peer& to = peer(slot_of(qp.attributes.dest_qp_num));
  for (int packets = 0; !qp.answers.empty(); ++packets) {
    if (to.gone) {
      qp.answers.clear();
      return true;
    }
    Answer& first = qp.answers.front();
    unfinished_ = unfinished_ || packets == kTurnPackets;
    if (packets == kTurnPackets || !send_answer(qp, first, to)) {
      activate(qp);
      return false;
    }
    if (first.kind != PacketKind::kReadAnswer || first.done == first.length) qp.answers.pop_front();
  }
  return true;
}

}  // namespace greynic::lab
