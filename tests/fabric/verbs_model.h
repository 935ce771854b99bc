#pragma once

/// Verbs semantics in plain words, without time: what the requests of one QP do to the memory of two
/// hosts, and what completes. It knows nothing of the fabric; random programs hold one against the
/// other. Requests of one round are posted by one side of a pair, and carried out one by one.

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace greynic::model_of_verbs {

enum class Op : std::uint8_t { kSend, kSendImm, kWrite, kWriteImm, kRead, kSwap, kAdd };
enum class Kind : std::uint8_t { kReliable, kUnreliable, kDatagram };

struct Bytes {  ///< a piece of a host's memory
  std::uint64_t at = 0, count = 0;
};

/// A registered piece of the memory of one host.
struct Region {
  std::uint64_t begin = 0, bytes = 0;
  bool local_write = false, remote_write = false, remote_read = false, remote_atomic = false;
  int domain = 0;
  bool gone = false;
};

struct Request {
  std::uint64_t id = 0;
  Op op = Op::kSend;
  Bytes local;
  int local_region = 0;  ///< number among the regions of the host; -1: a key that is none
  std::uint64_t remote = 0;
  int remote_region = 0;
  bool signaled = true;
  bool foreign_handle = false;  ///< the address handle is of another domain
  std::uint32_t immediate = 0;
  std::uint64_t compare_add = 0, swap = 0;
};

struct Receive {
  std::uint64_t id = 0;
  Bytes local;
  int region = 0;
};

struct Done {
  std::uint64_t id = 0;
  std::string status;
  bool receive = false, write_imm = false;
  std::uint64_t bytes = 0;  ///< of receives that succeed
  std::uint32_t immediate = 0;
  bool operator==(const Done&) const = default;
};

struct Side {
  std::vector<std::byte>* memory = nullptr;
  std::vector<Region>* regions = nullptr;
  int domain = 0;
  bool error = false;
  bool may_write = true, may_read = true, may_atomic = true;  ///< what the peer may do
  std::deque<Receive> receives;
  std::vector<Done> sends_done, receives_done;
};

struct Pair {
  Kind kind = Kind::kReliable;
  Side a, b;
};

inline constexpr std::uint64_t kHeader = 40;  ///< of datagrams

inline const Region* find(const Side& side, int region, std::uint64_t at, std::uint64_t bytes) {
  if (region < 0) return nullptr;
  const Region& r = (*side.regions)[static_cast<std::size_t>(region)];
  const bool inside = at >= r.begin && at + bytes <= r.begin + r.bytes;
  return !r.gone && r.domain == side.domain && inside ? &r : nullptr;
}

inline void flush_receives(Side& side) {
  for (const Receive& r : side.receives)
    side.receives_done.push_back({r.id, "IBV_WC_WR_FLUSH_ERR", true});
  side.receives.clear();
}
inline void to_error(Side& side) {
  side.error = true;
  flush_receives(side);
}

/// Carries one request out. Returns the requester's status. `mtu`: of datagrams.
inline std::string carry_out(Pair& pair, Side& mine, Side& peer, const Request& q,
                             std::uint64_t mtu) {
  const bool reliable = pair.kind == Kind::kReliable;
  const bool datagram = pair.kind == Kind::kDatagram;
  const bool atomic = q.op == Op::kSwap || q.op == Op::kAdd;
  const bool reads = q.op == Op::kRead || atomic;
  const std::uint64_t count = atomic ? 8 : q.local.count;
  if (datagram && q.foreign_handle) return "IBV_WC_LOC_QP_OP_ERR";
  if (datagram && count > mtu) return "IBV_WC_LOC_LEN_ERR";
  const Region* own = find(mine, q.local_region, q.local.at, q.local.count);
  if (q.local.count > 0 && (own == nullptr || (reads && !own->local_write))) {
    return "IBV_WC_LOC_PROT_ERR";
  }
  if (peer.error) return reliable ? "IBV_WC_RETRY_EXC_ERR" : "IBV_WC_SUCCESS";

  // The responder.
  const bool sends = q.op == Op::kSend || q.op == Op::kSendImm;
  const bool writes = q.op == Op::kWrite || q.op == Op::kWriteImm;
  const auto refuse = [&](const char* status) -> std::string {
    if (!reliable) return "IBV_WC_SUCCESS";
    to_error(peer);
    return status;
  };
  if (writes && !peer.may_write) return refuse("IBV_WC_REM_INV_REQ_ERR");
  if (q.op == Op::kRead && !peer.may_read) return refuse("IBV_WC_REM_INV_REQ_ERR");
  if (atomic && (!peer.may_atomic || q.remote % 8 != 0)) return refuse("IBV_WC_REM_INV_REQ_ERR");
  if (!sends && count > 0) {
    const Region* there = find(peer, q.remote_region, q.remote, count);
    const bool allowed = there != nullptr && (writes              ? there->remote_write
                                              : q.op == Op::kRead ? there->remote_read
                                                                  : there->remote_atomic);
    if (!allowed) return refuse("IBV_WC_REM_ACCESS_ERR");
  }
  std::byte* from = mine.memory->data() + q.local.at;
  std::byte* to = peer.memory->data() + q.remote;
  if (sends || q.op == Op::kWriteImm) {
    if (peer.receives.empty()) return reliable ? "IBV_WC_RNR_RETRY_EXC_ERR" : "IBV_WC_SUCCESS";
    const Receive r = peer.receives.front();
    peer.receives.pop_front();
    const std::uint64_t header = datagram ? kHeader : 0;
    if (sends) {
      std::string wrong;
      if (r.local.count < count + header) {
        wrong = "IBV_WC_LOC_LEN_ERR";
      } else if (const Region* into = find(peer, r.region, r.local.at, r.local.count);
                 r.local.count > 0 && (into == nullptr || !into->local_write)) {
        wrong = "IBV_WC_LOC_PROT_ERR";
      }
      if (!wrong.empty()) {
        peer.receives_done.push_back({r.id, wrong, true});
        to_error(peer);
        if (!reliable) return "IBV_WC_SUCCESS";
        return wrong == "IBV_WC_LOC_LEN_ERR" ? "IBV_WC_REM_INV_REQ_ERR" : "IBV_WC_REM_OP_ERR";
      }
      std::memcpy(peer.memory->data() + r.local.at + header, from, count);
    } else {
      std::memcpy(to, from, count);
    }
    const bool immediate = q.op != Op::kSend;
    peer.receives_done.push_back(
        {r.id, "IBV_WC_SUCCESS", true, !sends, count + header, immediate ? q.immediate : 0});
    return "IBV_WC_SUCCESS";
  }
  if (writes) {
    std::memcpy(to, from, count);
  } else if (q.op == Op::kRead) {
    std::memcpy(from, to, count);
  } else {
    std::uint64_t old = 0;
    std::memcpy(&old, to, 8);
    const std::uint64_t now = q.op == Op::kAdd       ? old + q.compare_add
                              : old == q.compare_add ? q.swap
                                                     : old;
    std::memcpy(to, &now, 8);
    std::memcpy(from, &old, 8);
  }
  return "IBV_WC_SUCCESS";
}

/// One round: the requests of one side, in order.
inline void run_round(Pair& pair, Side& mine, Side& peer, const std::vector<Request>& list,
                      std::uint64_t mtu) {
  for (const Request& q : list) {
    const std::string status =
        mine.error ? "IBV_WC_WR_FLUSH_ERR" : carry_out(pair, mine, peer, q, mtu);
    const bool success = status == "IBV_WC_SUCCESS";
    if (q.signaled || !success) mine.sends_done.push_back({q.id, status});
    if (!success && !mine.error) to_error(mine);
  }
}

}  // namespace greynic::model_of_verbs
