// Events of the connection manager, and what comes from the other side.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/connection.h"
#include "preload/gid.h"

namespace greynic::lab {
namespace {

using State = CmId::State;

Connections* the_connections = nullptr;  ///< never destroyed: events come until the process ends

void fill_address(sockaddr_storage& to, std::uint32_t address, std::uint16_t port) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(to);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = __builtin_bswap32(address);
  v4.sin_port = __builtin_bswap16(port);
}

void on_connect(CmId& listener, const Message& message) {
  if (listener.state != State::kListening) {
    Message refusal = message;
    refusal.kind = MessageKind::kReject;
    refusal.to_id = message.from_id;
    refusal.error = ECONNREFUSED;
    refusal.private_bytes = 0;
    Nic::instance().tell_broker(refusal);
    return;
  }
  CmId* const id = new_id(listener.seen.channel, listener.seen.context, listener.seen.ps);
  attach(*id);
  id->state = State::kRequested;
  id->peer = message;
  id->param.responder_resources = message.initiator_depth;
  id->param.initiator_depth = message.responder_resources;
  id->param.retry_count = message.retry_count;
  fill_address(id->seen.route.addr.src_storage, message.to_address, message.port);
  fill_address(id->seen.route.addr.dst_storage, message.from_address, message.from_port);
  CmEvent* const event = push_event(*id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &message);
  event->seen.listen_id = &listener.seen;
}

void on_reply(CmId& id, const Message& message) {
  if (id.state != State::kConnecting) return;
  id.peer = message;
  if (id.datagrams()) {
    id.state = State::kConnected;
    push_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, &message);
    return;
  }
  id.state = State::kAnswered;
  push_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &message);
}

void on_disconnect(CmId& id, const Message& message) {
  if (id.state == State::kOver) return;
  const bool was_ours = id.state == State::kDisconnecting;
  if (id.state == State::kConnecting || id.state == State::kRequested) {
    push_event(id, RDMA_CM_EVENT_REJECTED, message.error, nullptr);
  } else {
    push_event(id, RDMA_CM_EVENT_DISCONNECTED, 0, nullptr);
  }
  if (!was_ours && message.kind == MessageKind::kDisconnect) {
    send_to_peer(id, MessageKind::kDisconnect, nullptr);
  }
  id.state = State::kOver;
}

void on_gone(std::uint32_t slot) {
  for (const auto& [number, id] : connections().ids) {
    const bool active = id->state >= State::kConnecting && id->state <= State::kDisconnecting;
    if (!active || id->peer.slot != slot) continue;
    if (id->state == State::kRequested) continue;  // accepting will tell
    push_event(*id,
               id->state == State::kConnecting ? RDMA_CM_EVENT_UNREACHABLE
                                               : RDMA_CM_EVENT_DISCONNECTED,
               id->state == State::kConnecting ? -ETIMEDOUT : 0, nullptr);
    id->state = State::kOver;
  }
}

}  // namespace

Connections& connections() {
  static std::once_flag once;
  std::call_once(once, [] { the_connections = new Connections; });
  return *the_connections;
}

void forget_connections() {
  if (the_connections) the_connections = new Connections;
}

CmEvent* push_event(CmId& id, rdma_cm_event_type type, int status, const Message* from) {
  auto* const event = new CmEvent;
  event->seen.id = &id.seen;
  event->seen.event = type;
  event->seen.status = status;
  if (from) {
    event->private_data = from->private_data;
    if (id.datagrams()) {
      rdma_ud_param& ud = event->seen.param.ud;
      ud.private_data = from->private_bytes ? event->private_data.data() : nullptr;
      ud.private_data_len = from->private_bytes;
      ud.qp_num = from->qp_number;
      ud.qkey = from->qp_key;
      ud.ah_attr.is_global = 1;
      ud.ah_attr.grh.dgid = address_gid(Nic::instance().network, from->host);
      ud.ah_attr.grh.sgid_index = kGidCount - 1;
      ud.ah_attr.grh.hop_limit = 64;
      ud.ah_attr.port_num = 1;
    } else {
      rdma_conn_param& conn = event->seen.param.conn;
      conn.private_data = from->private_bytes ? event->private_data.data() : nullptr;
      conn.private_data_len = from->private_bytes;
      // What one side initiates, the other serves.
      conn.responder_resources = from->initiator_depth;
      conn.initiator_depth = from->responder_resources;
      conn.flow_control = from->flow_control;
      conn.retry_count = from->retry_count;
      conn.rnr_retry_count = from->rnr_retry_count;
      conn.srq = from->has_srq;
      conn.qp_num = from->qp_number;
    }
  }
  id.channel().events.push_back(event);
  id.channel().bell.ring();
  return event;
}

void on_connection_message(const Message& message) {
  Connections& all = connections();
  const std::lock_guard lock(all.mutex);
  if (message.kind == MessageKind::kGone) return on_gone(message.slot);
  const bool ours = message.kind == MessageKind::kBindPort;
  const auto found = all.ids.find(ours ? message.from_id : message.to_id);
  if (found == all.ids.end()) return;
  CmId& id = *found->second;
  switch (message.kind) {
    case MessageKind::kBindPort:
      id.bind_answered = true;
      id.bind_error = message.error;
      id.bound_port = message.port;
      all.changed.notify_all();
      return;
    case MessageKind::kConnect:
      return on_connect(id, message);
    case MessageKind::kReply:
      return on_reply(id, message);
    case MessageKind::kReady:
      if (id.state != State::kAccepted) return;
      id.state = State::kConnected;
      push_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, nullptr);
      return;
    case MessageKind::kReject:
      if (id.state != State::kConnecting) return;
      id.state = State::kOver;
      // 28: consumer defined; 8: nobody serves this port.
      push_event(id, RDMA_CM_EVENT_REJECTED, message.error == 0 ? 28 : 8, &message);
      return;
    case MessageKind::kDisconnect:
      return on_disconnect(id, message);
    default:
      return;
  }
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  if (!cm_context()) return nullptr;
  auto* const channel = new CmChannel;
  channel->seen.fd = channel->bell.fd();
  return &channel->seen;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  delete reinterpret_cast<CmChannel*>(channel);
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  auto& from = *reinterpret_cast<CmChannel*>(channel);
  for (;;) {
    if (!from.bell.take()) return -1;
    Connections& all = connections();
    CmEvent* taken = nullptr;
    {
      const std::lock_guard lock(all.mutex);
      if (from.events.empty()) continue;  // its id was destroyed
      taken = from.events.front();
      from.events.pop_front();
      CmId& id = own(taken->seen.id);
      // Of a request the listener counts: who destroys it waits for the acknowledgement.
      taken->counted = taken->seen.listen_id ? &own(taken->seen.listen_id) : &id;
      ++taken->counted->unacknowledged;
      if (taken->seen.event == RDMA_CM_EVENT_CONNECT_RESPONSE && id.seen.qp) {
        taken->seen.event = RDMA_CM_EVENT_ESTABLISHED;
        taken->seen.status = connect_qp(id);
        if (taken->seen.status != 0) taken->seen.event = RDMA_CM_EVENT_CONNECT_ERROR;
        id.state = CmId::State::kConnected;
        send_to_peer(id, MessageKind::kReady, nullptr);
      }
    }
    *event = &taken->seen;
    return 0;
  }
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  if (!event) return failed(EINVAL);
  auto* const taken = reinterpret_cast<CmEvent*>(event);
  {
    Connections& all = connections();
    const std::lock_guard lock(all.mutex);
    if (taken->counted) --taken->counted->unacknowledged;
    all.changed.notify_all();
  }
  delete taken;
  return 0;
}

}  // extern "C"
