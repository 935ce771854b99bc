// Listening, connecting, accepting, and the end of a connection.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/connection.h"
#include "preload/gid.h"

namespace greynic::lab {
namespace {

using State = CmId::State;

std::uint16_t port_of(const sockaddr_storage& address) {
  // The port lies at the same place in both kinds of address.
  return __builtin_bswap16(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::uint8_t most_reads(std::uint8_t asked) { return std::min<std::uint8_t>(asked, 16); }

int step(CmId& id, ibv_qp_state to) {
  ibv_qp_attr attributes{};
  attributes.qp_state = to;
  int mask = 0;
  if (const int error = qp_attributes(id, attributes, mask)) return error;
  return ibv_modify_qp(id.seen.qp, &attributes, mask);
}

}  // namespace

int qp_attributes(CmId& id, ibv_qp_attr& attributes, int& mask) {
  const ibv_qp_state to = attributes.qp_state;
  const bool ud = id.datagrams();
  attributes = {};
  attributes.qp_state = to;
  mask = IBV_QP_STATE;
  switch (to) {
    case IBV_QPS_INIT:
      mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
      attributes.port_num = 1;
      attributes.qkey = RDMA_UDP_QKEY;
      attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
      return 0;
    case IBV_QPS_RTR:
      if (ud) return 0;
      mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      attributes.ah_attr.is_global = 1;
      attributes.ah_attr.grh.dgid = address_gid(Nic::instance().network, id.peer.host);
      attributes.ah_attr.grh.sgid_index = kGidCount - 1;
      attributes.ah_attr.grh.hop_limit = 64;
      attributes.ah_attr.port_num = 1;
      attributes.path_mtu = IBV_MTU_4096;
      attributes.dest_qp_num = id.peer.qp_number;
      attributes.max_dest_rd_atomic = most_reads(id.param.responder_resources);
      attributes.min_rnr_timer = 12;
      return 0;
    case IBV_QPS_RTS:
      mask |= IBV_QP_SQ_PSN;
      if (ud) return 0;
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
      attributes.timeout = id.ack_timeout;
      attributes.retry_cnt = std::min<std::uint8_t>(id.param.retry_count, 7);
      attributes.rnr_retry = std::min<std::uint8_t>(
          std::max(id.param.rnr_retry_count, id.peer.rnr_retry_count), 7);
      attributes.max_rd_atomic = most_reads(id.param.initiator_depth);
      return 0;
    default:
      return EINVAL;
  }
}

int connect_qp(CmId& id) {
  if (const int error = step(id, IBV_QPS_RTR)) return error;
  return step(id, IBV_QPS_RTS);
}

bool send_to_peer(CmId& id, MessageKind kind, const rdma_conn_param* param) {
  Message message{.kind = kind};
  message.slot = id.peer.slot;
  message.to_id = id.peer.from_id;
  message.from_id = id.number;
  message.port_space = static_cast<std::uint32_t>(id.seen.ps);
  message.qp_key = RDMA_UDP_QKEY;
  if (id.seen.qp) message.qp_number = id.seen.qp->qp_num;
  if (param) {
    if (!id.seen.qp) message.qp_number = param->qp_num;
    message.responder_resources = param->responder_resources;
    message.initiator_depth = param->initiator_depth;
    message.flow_control = param->flow_control;
    message.retry_count = param->retry_count;
    message.rnr_retry_count = param->rnr_retry_count;
    message.has_srq = id.seen.qp ? id.seen.qp->srq != nullptr : param->srq;
    if (param->private_data) {
      message.private_bytes = param->private_data_len;
      std::memcpy(message.private_data.data(), param->private_data, message.private_bytes);
    }
  }
  if (kind == MessageKind::kConnect) {
    message.to_address =
        __builtin_bswap32(id.seen.route.addr.dst_sin.sin_addr.s_addr);
    message.port = port_of(id.seen.route.addr.dst_storage);
    message.from_port = id.bound_port;
  }
  return Nic::instance().tell_broker(message);
}

}  // namespace greynic::lab

using namespace greynic::lab;
using State = CmId::State;

extern "C" {

int rdma_listen(rdma_cm_id* id, int) {
  CmId& self = own(id);
  if (self.state == State::kIdle) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)) != 0) return -1;
  }
  {
    const std::lock_guard lock(connections().mutex);
    if (self.state != State::kBound) return failed(EINVAL);
    self.state = State::kListening;
    Message message{.kind = MessageKind::kListenPort};
    message.port = self.bound_port;
    message.port_space = static_cast<std::uint32_t>(id->ps);
    Nic::instance().tell_broker(message);
  }
  tell_listening();
  return 0;
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) {
  CmId& self = own(id);
  {
    const std::lock_guard lock(connections().mutex);
    if (self.state != State::kRouted) return failed(EINVAL);
    self.param = param ? *param : rdma_conn_param{};
    if (!param) {
      self.param.responder_resources = self.param.initiator_depth = 16;
      self.param.retry_count = self.param.rnr_retry_count = 7;
    }
    self.state = State::kConnecting;
    if (!send_to_peer(self, MessageKind::kConnect, &self.param)) return failed(ENODEV);
  }
  return finish_call(self);
}

int rdma_establish(rdma_cm_id* id) {
  CmId& self = own(id);
  const std::lock_guard lock(connections().mutex);
  if (id->qp || self.state != State::kAnswered) return failed(EINVAL);
  self.state = State::kConnected;
  return send_to_peer(self, MessageKind::kReady, nullptr) ? 0 : failed(ENODEV);
}

int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
  CmId& self = own(listener);
  if (!self.waits) return failed(EINVAL);
  if (listener->event) rdma_ack_cm_event(std::exchange(listener->event, nullptr));
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listener->channel, &event) != 0) return -1;
  if (event->status != 0 || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    rdma_ack_cm_event(event);
    return failed(EINVAL);
  }
  CmId& made = own(event->id);
  made.waits = true;
  made.seen.channel = &made.own_channel.seen;
  if (self.makes_qps) {
    ibv_qp_init_attr asked = self.listen_qp;
    if (rdma_create_qp(&made.seen, self.listen_pd, &asked) != 0) {
      rdma_ack_cm_event(event);
      rdma_destroy_id(&made.seen);
      return -1;
    }
  }
  // It keeps the event, with the private data of the request, until its next call.
  made.seen.event = event;
  *id = &made.seen;
  return 0;
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) {
  CmId& self = own(id);
  {
    const std::lock_guard lock(connections().mutex);
    if (self.state != State::kRequested) return failed(EINVAL);
    self.param = param ? *param : rdma_conn_param{};
    if (!param) {
      self.param.responder_resources = self.peer.initiator_depth;
      self.param.initiator_depth = self.peer.responder_resources;
      self.param.rnr_retry_count = 7;
    }
    self.param.responder_resources =
        std::min(self.param.responder_resources, std::max<std::uint8_t>(self.peer.initiator_depth, 1));
    self.param.retry_count = self.peer.retry_count;
    if (id->qp && !self.datagrams()) {
      if (const int error = connect_qp(self)) return failed(error);
    }
    self.state = self.datagrams() ? State::kConnected : State::kAccepted;
    if (!send_to_peer(self, MessageKind::kReply, &self.param)) return failed(ENODEV);
  }
  return self.datagrams() ? 0 : finish_call(self);
}

int rdma_reject(rdma_cm_id* id, const void* private_data, std::uint8_t bytes) {
  CmId& self = own(id);
  const std::lock_guard lock(connections().mutex);
  if (self.state != State::kRequested) return failed(EINVAL);
  rdma_conn_param param{};
  param.private_data = private_data;
  param.private_data_len = bytes;
  self.state = State::kOver;
  return send_to_peer(self, MessageKind::kReject, &param) ? 0 : failed(ENODEV);
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, std::uint8_t bytes) {
  return rdma_reject(id, private_data, bytes);
}

int rdma_disconnect(rdma_cm_id* id) {
  CmId& self = own(id);
  {
    const std::lock_guard lock(connections().mutex);
    const bool over = self.state == State::kOver;
    const bool connected = self.state == State::kConnected || self.state == State::kAccepted ||
                           self.state == State::kAnswered;
    if (!connected && !over) return failed(EINVAL);
    if (id->qp && !self.datagrams()) {
      ibv_qp_attr attributes{};
      attributes.qp_state = IBV_QPS_ERR;
      ibv_modify_qp(id->qp, &attributes, IBV_QP_STATE);
    }
    if (connected) {
      self.state = State::kDisconnecting;
      send_to_peer(self, MessageKind::kDisconnect, nullptr);
    }
  }
  return finish_call(self);
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  CmId& self = own(id);
  const std::lock_guard lock(connections().mutex);
  if (event != IBV_EVENT_COMM_EST) return failed(EINVAL);
  if (self.state == State::kAccepted) {
    self.state = State::kConnected;
    push_event(self, RDMA_CM_EVENT_ESTABLISHED, 0, nullptr);
  }
  return 0;
}

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  const std::lock_guard lock(connections().mutex);
  const int error = qp_attributes(own(id), *attributes, *mask);
  return error == 0 ? 0 : failed(error);
}

}  // extern "C"
