// The rest of librdmacm: endpoints in one call, names, options, and what is not offered.

#include <netdb.h>
#include <sys/select.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/connection.h"

namespace greynic::lab {
namespace {

sockaddr* copied(const sockaddr* address, socklen_t bytes) {
  auto* const copy = static_cast<sockaddr*>(std::calloc(1, sizeof(sockaddr_storage)));
  if (copy) std::memcpy(copy, address, bytes);
  return copy;
}

}  // namespace
}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** result) {
  if (!cm_context()) return -1;
  const int flags = hints ? hints->ai_flags : 0;
  addrinfo plain{};
  plain.ai_family = hints && hints->ai_family == AF_INET6 ? AF_INET6 : AF_INET;
  plain.ai_flags = ((flags & RAI_PASSIVE) != 0 ? AI_PASSIVE : 0) |
                   ((flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
  plain.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (node || service) {
    if (const int error = getaddrinfo(node, service, &plain, &found)) return error;
  }
  auto* const made = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  made->ai_flags = flags;
  made->ai_family = plain.ai_family;
  made->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space : RDMA_PS_TCP;
  const bool datagrams = made->ai_port_space == RDMA_PS_UDP || made->ai_port_space == RDMA_PS_IPOIB;
  made->ai_qp_type =
      hints && hints->ai_qp_type ? hints->ai_qp_type : (datagrams ? IBV_QPT_UD : IBV_QPT_RC);
  if (hints && hints->ai_src_addr) {
    made->ai_src_addr = copied(hints->ai_src_addr, hints->ai_src_len);
    made->ai_src_len = hints->ai_src_len;
  }
  if (found && (flags & RAI_PASSIVE) != 0) {
    std::free(made->ai_src_addr);
    made->ai_src_addr = copied(found->ai_addr, found->ai_addrlen);
    made->ai_src_len = found->ai_addrlen;
  } else if (found) {
    made->ai_dst_addr = copied(found->ai_addr, found->ai_addrlen);
    made->ai_dst_len = found->ai_addrlen;
  } else if (hints && hints->ai_dst_addr) {
    made->ai_dst_addr = copied(hints->ai_dst_addr, hints->ai_dst_len);
    made->ai_dst_len = hints->ai_dst_len;
  }
  if (found) freeaddrinfo(found);
  *result = made;
  return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* list) {
  while (list) {
    rdma_addrinfo* const next = list->ai_next;
    std::free(list->ai_src_addr);
    std::free(list->ai_dst_addr);
    std::free(list);
    list = next;
  }
}

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* from, ibv_pd* pd, ibv_qp_init_attr* qp) {
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(from->ai_port_space)) !=
      0) {
    return -1;
  }
  CmId& self = own(made);
  made->qp_type = static_cast<ibv_qp_type>(from->ai_qp_type);
  int result = 0;
  if (from->ai_flags & RAI_PASSIVE) {
    result = rdma_bind_addr(made, from->ai_src_addr);
    self.listen_pd = pd;
    self.makes_qps = qp != nullptr;
    if (qp) self.listen_qp = *qp;
  } else {
    result = rdma_resolve_addr(made, from->ai_src_addr, from->ai_dst_addr, 2000);
    if (result == 0) result = rdma_resolve_route(made, 2000);
    if (result == 0 && qp) {
      qp->qp_type = made->qp_type;
      result = rdma_create_qp(made, pd, qp);
    }
  }
  if (result != 0) {
    const int error = errno;
    rdma_destroy_ep(made);
    return failed(error);
  }
  *id = made;
  return 0;
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id->qp) rdma_destroy_qp(id);
  if (id->srq) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return id->route.addr.src_sin.sin_port; }
__be16 rdma_get_dst_port(rdma_cm_id* id) { return id->route.addr.dst_sin.sin_port; }

ibv_context** rdma_get_devices(int* count) {
  ibv_context* const context = cm_context();
  auto** const list = static_cast<ibv_context**>(std::calloc(2, sizeof(ibv_context*)));
  if (list) list[0] = context;
  if (count) *count = context ? 1 : 0;
  return list;
}

void rdma_free_devices(ibv_context** list) { std::free(list); }

int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t bytes) {
  if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT && bytes == 1) {
    std::memcpy(&own(id).ack_timeout, value, 1);
    return 0;
  }
  // Of all others none changes what happens on a network that neither routes nor prefers.
  return level == RDMA_OPTION_ID || level == RDMA_OPTION_IB ? 0 : failed(ENOSYS);
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  CmId& self = own(id);
  if (id->event) rdma_ack_cm_event(std::exchange(id->event, nullptr));
  const std::lock_guard lock(connections().mutex);
  CmChannel& from = self.channel();
  self.waits = channel == nullptr;
  id->channel = channel ? channel : &self.own_channel.seen;
  CmChannel& to = self.channel();
  if (&from == &to) return 0;
  for (CmEvent* const event : from.events) {
    if (event->seen.id != id) continue;
    to.events.push_back(event);
    to.bell.ring();
  }
  std::erase_if(from.events, [&](const CmEvent* event) { return event->seen.id == id; });
  return 0;
}

int rdma_set_local_ece(rdma_cm_id*, ibv_ece* ece) {
  return ece->options == 0 ? 0 : failed(not_offered("rdma_set_local_ece with options"));
}
int rdma_get_remote_ece(rdma_cm_id*, ibv_ece* ece) {
  *ece = {};
  return 0;
}
int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) {
  return failed(not_offered("rdma_join_multicast"));
}
int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex*, void*) {
  return failed(not_offered("rdma_join_multicast_ex"));
}
int rdma_leave_multicast(rdma_cm_id*, sockaddr*) {
  return failed(not_offered("rdma_leave_multicast"));
}

/// Without it no other call of rsockets can begin.
__attribute__((visibility("default"))) int rsocket(int, int, int) {
  return failed(not_offered("rsocket"));
}

}  // extern "C"
