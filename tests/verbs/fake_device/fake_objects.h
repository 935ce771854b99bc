#pragma once

/// What there is on the device in memory, and the requests that its QPs work through.

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_device/fake_rdma.h"

namespace greynic::verbs::fake {

inline std::recursive_mutex the_lock;
using Lock = std::lock_guard<std::recursive_mutex>;

struct Cq {
  ibv_cq cq{};
  std::deque<ibv_wc> done;
  int users = 0;
};
struct Domain {
  ibv_xrcd xrcd{};
  int users = 0;
};
struct Receive {
  std::uint64_t id;
  std::vector<ibv_sge> pieces;
};
struct Srq {
  ibv_srq srq{};
  std::uint32_t number = 0;
  Domain* domain = nullptr;
  Cq* cq = nullptr;
  std::size_t depth = 0;
  std::deque<Receive> posted;
};
struct Send {
  ibv_send_wr request{};
  std::vector<ibv_sge> pieces;
};
struct Qp {
  ibv_qp_ex ex{};
  bool target = false;
  Domain* domain = nullptr;
  Cq* cq = nullptr;
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t peer = 0;
  std::uint32_t sends_from = 0;
  std::uint32_t expects = 0;
  std::size_t depth = 0;
  std::deque<Send> queue;      ///< posted, not yet done
  std::vector<Send> building;  ///< between wr_start and wr_complete
};
struct Td {
  ibv_td td{};
  std::uint32_t number = 0;
  std::size_t users = 0;
};
struct Pd {
  ibv_pd pd{};
  Pd* parent = nullptr;  ///< of a parent domain, the one it stands for
  Td* thread = nullptr;
  std::size_t users = 0;  ///< parent domains
};
struct Mr {
  ibv_mr mr{};
  int access = 0;
};

/// Everything there is, by handle or number.
struct World {
  std::map<std::uint32_t, std::unique_ptr<Qp>> qps;
  std::map<std::uint32_t, std::unique_ptr<Srq>> srqs;
  std::map<std::uint32_t, std::unique_ptr<Mr>> regions;
  std::set<ibv_pd*> domains;
  std::uint32_t next = 17;
};
inline World world;

inline void violated(const std::string& what) { fake_rdma().violations.push_back(what); }

inline std::uint32_t new_number() {
  ++fake_rdma().objects;
  return world.next += 3;
}

inline Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
inline Srq& of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }
inline Domain& of(ibv_xrcd* xrcd) { return *reinterpret_cast<Domain*>(xrcd); }
inline Pd& of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
inline Td& of(ibv_td* td) { return *reinterpret_cast<Td*>(td); }
inline Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
inline Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

/// Does what can be done of a QP's queue (fake_requests.cc).
void work(Qp& qp);

// What a context's and a QP's functions of the same names do.
int post_send(ibv_qp* handle, ibv_send_wr* first, ibv_send_wr** bad);
int post_recv(ibv_qp* handle, ibv_recv_wr* request, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* handle, ibv_recv_wr* first, ibv_recv_wr** bad);
int poll_cq(ibv_cq* handle, int capacity, ibv_wc* completions);
void give_extended_posting(ibv_qp_ex& qp);

}  // namespace greynic::verbs::fake
