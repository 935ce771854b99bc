// Identifiers: making and destroying them, addresses, QPs.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/calls.h"
#include "preload/connection.h"
#include "preload/gid.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

using State = CmId::State;

struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

/// IPv4, or IPv6 that stands for it. Other addresses are 0: any.
Endpoint endpoint_of(const sockaddr* address) {
  Endpoint point;
  if (!address) return point;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return {ntohl(v4.sin_addr.s_addr), ntohs(v4.sin_port)};
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    point.port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      std::memcpy(&point.address, v6.sin6_addr.s6_addr + 12, sizeof point.address);
      point.address = ntohl(point.address);
    }
  }
  return point;
}

std::size_t length_of(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
}

void set_own_address(CmId& id) {
  auto& source = reinterpret_cast<sockaddr_in&>(id.seen.route.addr.src_storage);
  const Nic& nic = Nic::instance();
  source.sin_family = AF_INET;
  source.sin_addr.s_addr = htonl(address_of(nic.network, nic.host));
  source.sin_port = htons(id.bound_port);
}

/// The broker knows which ports a host's programs have. `lock` is of all connections.
int bind_port(CmId& id, std::uint16_t port, std::unique_lock<std::mutex>& lock) {
  Message message{.kind = MessageKind::kBindPort};
  message.from_id = id.number;
  message.port = port;
  message.port_space = static_cast<std::uint32_t>(id.seen.ps);
  id.bind_answered = false;
  if (!Nic::instance().tell_broker(message)) return ENODEV;
  const auto answered = [&] { return id.bind_answered; };
  if (turns::taken()) {  // 10 s of virtual time are nothing to wait for
    connections().changed.wait(lock, answered);
  } else if (!connections().changed.wait_for(lock, std::chrono::seconds(10), answered)) {
    return ETIMEDOUT;
  }
  if (id.bind_error == 0) id.state = State::kBound;
  return id.bind_error;
}

void free_port(const CmId& id) {
  if (id.bound_port == 0) return;
  Message message{.kind = MessageKind::kFreePort};
  message.port = id.bound_port;
  message.port_space = static_cast<std::uint32_t>(id.seen.ps);
  Nic::instance().tell_broker(message);
}

/// What rdma_create_qp makes when it is given no CQs.
int make_queues(CmId& id, ibv_qp_init_attr_ex& asked) {
  rdma_cm_id& seen = id.seen;
  if (!asked.send_cq) {
    seen.send_cq_channel = ibv_create_comp_channel(seen.verbs);
    const int entries = static_cast<int>(std::max(1U, asked.cap.max_send_wr));
    seen.send_cq = ibv_create_cq(seen.verbs, entries, &seen, seen.send_cq_channel, 0);
    asked.send_cq = seen.send_cq;
  }
  if (!asked.recv_cq) {
    seen.recv_cq_channel = ibv_create_comp_channel(seen.verbs);
    const int entries = static_cast<int>(std::max(1U, asked.srq ? 64U : asked.cap.max_recv_wr));
    seen.recv_cq = ibv_create_cq(seen.verbs, entries, &seen, seen.recv_cq_channel, 0);
    asked.recv_cq = seen.recv_cq;
  }
  return asked.send_cq && asked.recv_cq ? 0 : ENOMEM;
}

void destroy_queues(rdma_cm_id& seen) {
  for (auto [cq, channel] : {std::pair(&seen.send_cq, &seen.send_cq_channel),
                             std::pair(&seen.recv_cq, &seen.recv_cq_channel)}) {
    if (*cq && *channel) ibv_destroy_cq(*cq);
    if (*channel) ibv_destroy_comp_channel(*channel);
    *cq = nullptr;
    *channel = nullptr;
  }
}

int first_states(CmId& id) {
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = IBV_QPS_INIT;
  qp_attributes(id, attributes, mask);
  if (const int error = ibv_modify_qp(id.seen.qp, &attributes, mask)) return error;
  if (id.seen.qp->qp_type != IBV_QPT_UD) return 0;
  attributes.qp_state = IBV_QPS_RTR;
  if (const int error = ibv_modify_qp(id.seen.qp, &attributes, IBV_QP_STATE)) return error;
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = 0;
  return ibv_modify_qp(id.seen.qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

}  // namespace

int failed(int error) {
  errno = error;
  return -1;
}

ibv_context* cm_context() {
  Connections& all = connections();
  const std::lock_guard lock(all.mutex);
  if (all.context) return all.context;
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list && list[0]) all.context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (all.context) all.pd = ibv_alloc_pd(all.context);
  if (!all.context) errno = ENODEV;
  return all.context;
}

CmId* new_id(rdma_event_channel* channel, void* context, rdma_port_space space) {
  auto* const id = new CmId;
  Connections& all = connections();
  id->number = ++all.last;
  id->waits = channel == nullptr;
  id->own_channel.seen.fd = id->own_channel.bell.fd();
  id->seen.channel = channel ? channel : &id->own_channel.seen;
  id->seen.context = context;
  id->seen.ps = space;
  id->seen.qp_type = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
  all.ids[id->number] = id;
  return id;
}

void attach(CmId& id) {
  id.seen.verbs = connections().context;
  id.seen.pd = connections().pd;
  id.seen.port_num = 1;
  const Nic& nic = Nic::instance();
  rdma_ib_addr& address = id.seen.route.addr.addr.ibaddr;
  address.sgid = address_gid(nic.network, nic.host);
  address.pkey = 0xFFFF;
}

int finish_call(CmId& id) {
  if (!id.waits) return 0;
  if (id.seen.event) {
    rdma_ack_cm_event(id.seen.event);
    id.seen.event = nullptr;
  }
  if (rdma_get_cm_event(id.seen.channel, &id.seen.event) != 0) return -1;
  const int status = id.seen.event->status;
  if (status == 0) return 0;
  return failed(id.seen.event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : std::abs(status));
}

}  // namespace greynic::lab

using namespace greynic::lab;
using State = CmId::State;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
  if (!cm_context()) return -1;
  const std::lock_guard lock(connections().mutex);
  *id = &new_id(channel, context, space)->seen;
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  CmId& self = own(id);
  if (id->event) rdma_ack_cm_event(std::exchange(id->event, nullptr));
  Connections& all = connections();
  {
    std::unique_lock lock(all.mutex);
    std::erase_if(self.channel().events, [&](CmEvent* event) {
      const bool is_of = event->seen.id == id || event->seen.listen_id == id;
      if (is_of) delete event;
      return is_of;
    });
    all.changed.wait(lock, [&] { return self.unacknowledged == 0; });
    if (self.state == CmId::State::kRequested) send_to_peer(self, MessageKind::kReject, nullptr);
    if (self.state == CmId::State::kConnected || self.state == CmId::State::kAccepted) {
      send_to_peer(self, MessageKind::kDisconnect, nullptr);
    }
    free_port(self);
    all.ids.erase(self.number);
  }
  std::free(id->route.path_rec);
  delete &self;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  std::unique_lock lock(connections().mutex);
  CmId& self = own(id);
  if (self.state != State::kIdle) return failed(EINVAL);
  const Endpoint asked = endpoint_of(address);
  if (const int error = bind_port(self, asked.port, lock)) return failed(error);
  std::memcpy(&id->route.addr.src_storage, address, length_of(*address));
  set_port(id->route.addr.src_storage, self.bound_port);
  if (asked.address != 0) attach(self);
  return 0;
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int) {
  if (!id || !destination) return failed(EINVAL);
  CmId& self = own(id);
  {
    std::unique_lock lock(connections().mutex);
    if (self.state == State::kIdle) {
      if (const int error = bind_port(self, endpoint_of(source).port, lock)) return failed(error);
    }
    if (self.state != State::kBound) return failed(EINVAL);
    std::memcpy(&id->route.addr.dst_storage, destination, length_of(*destination));
    set_own_address(self);
    attach(self);
    const Nic& nic = Nic::instance();
    const std::uint32_t to = endpoint_of(destination).address;
    const bool of_lab = to >> 16 == (127U << 8 | nic.network);
    id->route.addr.addr.ibaddr.dgid =
        address_gid(nic.network, of_lab ? (to & 0xFFFF) - 1 : nic.host);
    self.state = State::kResolved;
    push_event(self, RDMA_CM_EVENT_ADDR_RESOLVED, 0, nullptr);
  }
  return finish_call(self);
}

int rdma_resolve_route(rdma_cm_id* id, int) {
  CmId& self = own(id);
  {
    const std::lock_guard lock(connections().mutex);
    if (self.state != State::kResolved) return failed(EINVAL);
    self.state = State::kRouted;
    auto* const path = static_cast<ibv_sa_path_rec*>(std::calloc(1, sizeof(ibv_sa_path_rec)));
    path->dgid = id->route.addr.addr.ibaddr.dgid;
    path->sgid = id->route.addr.addr.ibaddr.sgid;
    path->pkey = 0xFFFF;
    path->mtu = IBV_MTU_4096;
    path->hop_limit = 64;
    path->numb_path = 1;
    id->route.path_rec = path;
    id->route.num_paths = 1;
    push_event(self, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, nullptr);
  }
  return finish_call(self);
}

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* asked) {
  CmId& self = own(id);
  if (id->qp) return failed(EINVAL);
  if (!id->verbs) {
    const std::lock_guard lock(connections().mutex);
    attach(self);
  }
  if ((asked->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || !asked->pd) {
    asked->comp_mask |= IBV_QP_INIT_ATTR_PD;
    asked->pd = id->pd;
  }
  if (asked->pd->context != id->verbs) return failed(EINVAL);
  id->pd = asked->pd;
  if (const int error = make_queues(self, *asked)) return failed(error);
  if (!asked->srq) asked->srq = id->srq;
  ibv_qp* const qp = create_qp_ex(id->verbs, asked);
  if (!qp) return -1;
  id->qp = qp;
  if (const int error = first_states(self)) {
    rdma_destroy_qp(id);
    return failed(error);
  }
  return 0;
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* asked) {
  ibv_qp_init_attr_ex all = extended(*asked, pd);
  const int result = rdma_create_qp_ex(id, &all);
  if (result == 0) asked->cap = all.cap;
  return result;
}

void rdma_destroy_qp(rdma_cm_id* id) {
  if (id->qp) ibv_destroy_qp(std::exchange(id->qp, nullptr));
  destroy_queues(*id);
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* asked) {
  if ((asked->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || !asked->pd) {
    asked->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    asked->pd = id->pd;
  }
  id->srq = create_srq_ex(id->verbs, asked);
  if (id->srq) id->pd = asked->pd;
  return id->srq ? 0 : -1;
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* asked) {
  ibv_srq_init_attr_ex all{};
  all.srq_context = asked->srq_context;
  all.attr = asked->attr;
  if (pd) all.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  all.pd = pd;
  return rdma_create_srq_ex(id, &all);
}

void rdma_destroy_srq(rdma_cm_id* id) {
  if (id->srq) ibv_destroy_srq(std::exchange(id->srq, nullptr));
}

}  // extern "C"
