#include <algorithm>
#include <array>

#include "preload/nic.h"

namespace greynic::lab {
namespace {

PacketKind kind_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return PacketKind::kWrite;
    case IBV_WR_RDMA_READ:
      return PacketKind::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return PacketKind::kCompareSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return PacketKind::kFetchAdd;
    default:
      return PacketKind::kSend;
  }
}

ibv_wc_opcode completion_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

std::uint16_t flags_of(const SendWork& work) {
  std::uint16_t flags = packet_flag::kLast;
  if (work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    flags |= packet_flag::kImmediate;
  }
  if (work.opcode == IBV_WR_SEND_WITH_INV) flags |= packet_flag::kInvalidate;
  if (work.flags & IBV_SEND_SOLICITED) flags |= packet_flag::kSolicited;
  return flags;
}

/// By the 5 bits of the specification.
Clock::duration rnr_wait(std::uint32_t code) {
  static constexpr std::array<std::uint32_t, 32> kHundredthsOfMs = {
      65536, 1,   2,   3,   4,   6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10 * kHundredthsOfMs[code & 31]);
}

constexpr std::uint64_t kLongestMessage = 1ULL << 31;

}  // namespace

/// What is wrong with the request on this side.
ibv_wc_status Nic::check(Qp& qp, const SendWork& work, Pd* pd) {
  if (work.length > kLongestMessage) return IBV_WC_LOC_LEN_ERR;
  if (qp.type() == IBV_QPT_UD && work.length > port_mtu_bytes()) return IBV_WC_LOC_LEN_ERR;
  if (work.is_inline) return IBV_WC_SUCCESS;
  const unsigned access = work.reads() ? IBV_ACCESS_LOCAL_WRITE : 0;
  return may_use(work.elements, pd, access) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

void Nic::halt(Qp& qp, SendWork& work, ibv_wc_status status) {
  work.done = true;
  work.status = status;
  qp.halted = true;
}

/// Windows and keys: nothing leaves.
bool Nic::work_here(Qp& qp, SendWork& work) {
  if (work.opcode == IBV_WR_BIND_MW) {
    const ibv_wc_status status = bind(&qp, *work.bind.window, work.bind.rkey, work.bind.info);
    if (status == IBV_WC_SUCCESS) {
      work.done = true;
    } else {
      halt(qp, work, status);
    }
    return true;
  }
  if (work.opcode == IBV_WR_LOCAL_INV) {
    if (invalidate(qp, work.immediate)) {
      work.done = true;
    } else {
      halt(qp, work, IBV_WC_MW_BIND_ERR);
    }
    return true;
  }
  return false;
}

/// One packet of a request. False: the ring is full.
bool Nic::send_packet(Qp& qp, SendWork& work, Peer& to, Pd* pd) {
  const PacketKind kind = kind_of(work.opcode);
  const bool carries = kind == PacketKind::kSend || kind == PacketKind::kWrite;
  const std::uint64_t left = carries ? work.length - qp.offset : 0;
  const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kChunkBytes));
  Packet* const packet = reserve(to, payload);
  if (!packet) return false;
  const bool datagram = qp.type() == IBV_QPT_UD;
  packet->kind = kind;
  packet->to_qp = datagram ? work.to_qp : qp.attributes.dest_qp_num;
  packet->from_qp = qp.number();
  packet->to_host = static_cast<std::uint32_t>(datagram ? work.to_host : qp.peer_host);
  packet->from_host = host;
  packet->message = work.message;
  packet->offset = qp.offset;
  packet->length = work.length;
  packet->address = work.remote_address;
  packet->key = work.rkey;
  packet->immediate = work.immediate;
  packet->compare_add = work.compare_add;
  packet->swap = work.swap;
  packet->qp_key = (work.to_key & 0x80000000U) ? qp.attributes.qkey : work.to_key;
  packet->srq = work.to_srq;
  packet->transport = static_cast<std::uint8_t>(qp.type());
  packet->service_level = work.service_level;
  if (!gather(work, pd, qp.offset, packet->data(), payload)) {
    // Its memory was deregistered meanwhile. The packet is not published.
    halt(qp, work, IBV_WC_LOC_PROT_ERR);
    return true;
  }
  qp.offset += payload;
  if (payload == left) packet->flags = flags_of(work);
  publish(to, *packet);
  return true;
}

void Nic::requester(Qp& qp) {
  if (qp.base().state != IBV_QPS_RTS || qp.type() == IBV_QPT_XRC_RECV) return;
  if (qp.fail_on_resume && !qp.waiting && qp.next < qp.sends.size()) {
    qp.fail_on_resume = false;
    halt(qp, qp.sends[qp.next++], IBV_WC_RETRY_EXC_ERR);
  }
  Pd* const pd = object_of<Pd>(qp.base().pd).whole();
  for (int packets = 0; qp.next < qp.sends.size() && !qp.halted && !qp.waiting;) {
    SendWork& work = qp.sends[qp.next];
    if (qp.offset == 0) {
      if ((work.flags & IBV_SEND_FENCE) && qp.open_reads > 0) break;
      if (work.reads() && qp.open_reads >= std::max<std::size_t>(1, qp.attributes.max_rd_atomic)) {
        break;
      }
      const ibv_wc_status status = check(qp, work, pd);
      if (status != IBV_WC_SUCCESS) halt(qp, work, status);
      if (work.done || work_here(qp, work)) {
        ++qp.next;
        continue;
      }
      if (!work.numbered) {
        work.numbered = true;
        work.message = qp.next_message++;
      }
    }
    const bool datagram = qp.type() == IBV_QPT_UD;
    const std::int64_t to_host = datagram ? work.to_host : qp.peer_host;
    const std::uint32_t to_qp = datagram ? work.to_qp : qp.attributes.dest_qp_num;
    Peer& to = peer(slot_of(to_qp));
    const bool nobody = to_host < 0 || to.gone;
    if (nobody && qp.reliable()) {
      lost(qp, work.message);
      break;
    }
    if (!nobody) {
      if (packets++ == kTurnPackets) {  // others want theirs
        unfinished_ = true;
        activate(qp);
        break;
      }
      if (!send_packet(qp, work, to, pd)) {
        activate(qp);
        break;
      }
      if (!qp.halted && qp.offset < work.length && !work.reads()) continue;
    }
    ++qp.next;
    qp.offset = 0;
    if (qp.halted) break;
    if (!qp.reliable()) work.done = true;
    if (work.reads()) ++qp.open_reads;
  }
  finish(qp);
}

void Nic::finish(Qp& qp) {
  while (qp.next > 0 && !qp.sends.empty() && qp.sends.front().done) {
    const SendWork work = std::move(qp.sends.front());
    qp.sends.pop_front();
    --qp.next;
    if (work.status != IBV_WC_SUCCESS || qp.asked.sq_sig_all || (work.flags & IBV_SEND_SIGNALED)) {
      ibv_wc wc{};
      wc.wr_id = work.id;
      wc.status = work.status;
      wc.opcode = completion_of(work.opcode);
      wc.byte_len = static_cast<std::uint32_t>(work.length);
      wc.qp_num = qp.number();
      complete(object_of<Cq>(qp.base().send_cq), wc, false);
    }
    if (work.status != IBV_WC_SUCCESS) return fail(qp);
  }
}

void Nic::go_back(Qp& qp, std::uint32_t message, Clock::duration wait) {
  qp.offset = 0;
  for (std::size_t i = 0; i < qp.sends.size(); ++i) {
    if (qp.sends[i].numbered && qp.sends[i].message == message) {
      qp.next = std::min(qp.next, i);
      break;
    }
  }
  for (std::size_t i = qp.next; i < qp.sends.size(); ++i) {
    if (qp.sends[i].status != IBV_WC_SUCCESS) {  // its turn comes again
      qp.sends[i].done = false;
      qp.sends[i].status = IBV_WC_SUCCESS;
    }
  }
  qp.halted = false;
  qp.open_reads = static_cast<std::size_t>(
      std::count_if(qp.sends.begin(), qp.sends.begin() + static_cast<std::ptrdiff_t>(qp.next),
                    [](const SendWork& work) { return work.reads() && !work.done; }));
  qp.waiting = true;
  qp.resume = wait == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + wait;
  waiting_.insert(&qp);
  nudge();
}

void Nic::lost(Qp& qp, std::uint32_t message) {
  if (qp.waiting) return;
  if (qp.retries_left == 0) {
    qp.fail_on_resume = true;
  } else {
    --qp.retries_left;
  }
  const int timeout = qp.attributes.timeout & 31;
  go_back(qp, message,
          timeout == 0 ? Clock::duration::max() : std::chrono::nanoseconds(4096ULL << timeout));
}

void Nic::on_answer(const Packet& packet) {
  const auto found = qps.find(packet.to_qp);
  if (found == qps.end()) return;
  Qp& qp = *found->second;
  if (!qp.reliable() || qp.base().state != IBV_QPS_RTS ||
      packet.from_qp != qp.attributes.dest_qp_num) {
    return;
  }
  const auto sent = qp.sends.begin() + static_cast<std::ptrdiff_t>(qp.next);
  // What is answered may be the request that is still being sent.
  const auto last = qp.next < qp.sends.size() && qp.offset > 0 ? sent + 1 : sent;
  const auto of = std::find_if(qp.sends.begin(), last, [&](const SendWork& work) {
    return work.numbered && work.message == packet.message;
  });
  if (of == last) return;  // of an attempt that was given up
  for (auto before = qp.sends.begin(); before != of; ++before) {
    if (!before->reads()) before->done = true;
  }
  switch (packet.kind) {
    case PacketKind::kAck:
      if (!of->reads()) of->done = true;
      break;
    case PacketKind::kReadAnswer:
    case PacketKind::kAtomicAnswer:
      on_data(qp, *of, packet);
      break;
    case PacketKind::kNotReady:
      on_not_ready(qp, *of, packet.code, of == sent);
      return finish(qp);
    case PacketKind::kNak:
      if (of == sent) ++qp.next;
      qp.offset = 0;
      halt(qp, *of, static_cast<ibv_wc_status>(packet.code));
      return finish(qp);
    case PacketKind::kDropped:
      lost(qp, packet.message);
      return finish(qp);
    default:
      return;
  }
  qp.retries_left = qp.attributes.retry_cnt;
  qp.rnr_left = qp.attributes.rnr_retry;
  finish(qp);
  if (qp.next < qp.sends.size()) activate(qp);
}

void Nic::on_not_ready(Qp& qp, SendWork& work, std::uint32_t timer, bool being_sent) {
  if (qp.waiting) return;
  static constexpr int kForever = 7;
  if (qp.attributes.rnr_retry != kForever && qp.rnr_left-- == 0) {
    qp.offset = 0;
    if (being_sent) ++qp.next;
    return halt(qp, work, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  go_back(qp, work.message, rnr_wait(timer));
}

void Nic::on_data(Qp& qp, SendWork& work, const Packet& packet) {
  if (!work.reads() || work.done) return;
  Pd* const pd = object_of<Pd>(qp.base().pd).whole();
  if (!scatter(work.elements, pd, packet.offset, packet.data(), packet.payload)) {
    return halt(qp, work, IBV_WC_LOC_PROT_ERR);
  }
  if (packet.flags & packet_flag::kLast) {
    work.done = true;
    --qp.open_reads;
  }
}

void Nic::run_timers() {
  if (waiting_.empty()) return;
  const Clock::time_point now = Clock::now();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Qp& qp = **it;
    if (qp.resume > now) {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
    qp.waiting = false;
    activate(qp);
  }
}

Clock::time_point Nic::next_timer() {
  Clock::time_point first = Clock::time_point::max();
  for (const Qp* const qp : waiting_) first = std::min(first, qp->resume);
  return first;
}

}  // namespace greynic::lab
