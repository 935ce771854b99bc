#pragma once

/// librdmacm's objects. Addresses are resolved at once, because a lab's network is one address
/// range; connections are made by messages through the broker.

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "preload/nic.h"

namespace greynic::lab {

struct CmId;

struct CmEvent {
  rdma_cm_event seen{};
  std::array<std::uint8_t, 255> private_data{};
  CmId* counted = nullptr;  ///< whose unacknowledged events it is among
};

struct CmChannel {
  rdma_event_channel seen{};
  Bell bell;
  std::deque<CmEvent*> events;
};

struct CmId {
  rdma_cm_id seen{};
  enum class State : std::uint8_t {
    kIdle,
    kBound,
    kListening,
    kResolved,
    kRouted,
    kConnecting,
    kAnswered,
    kRequested,
    kAccepted,
    kConnected,
    kDisconnecting,
    kOver
  };
  State state = State::kIdle;
  std::uint64_t number = 0;  ///< what messages call it
  CmChannel own_channel;     ///< of an id that was made without one: its calls wait
  bool waits = false;
  bool own_qp_cqs = false;
  Message peer;             ///< the last request or reply of the other side
  rdma_conn_param param{};  ///< as asked by this side
  std::uint16_t bound_port = 0;
  std::uint8_t ack_timeout = 14;
  std::uint32_t unacknowledged = 0;
  bool bind_answered = false;
  int bind_error = 0;
  ibv_pd* listen_pd = nullptr;  ///< for the QPs of rdma_get_request
  ibv_qp_init_attr listen_qp{};
  bool makes_qps = false;

  [[nodiscard]] CmChannel& channel() { return *reinterpret_cast<CmChannel*>(seen.channel); }
  [[nodiscard]] bool datagrams() const {
    return seen.ps == RDMA_PS_UDP || seen.ps == RDMA_PS_IPOIB || seen.qp_type == IBV_QPT_UD;
  }
};

inline CmId& own(rdma_cm_id* id) { return *reinterpret_cast<CmId*>(id); }

/// All ids of this process, and the lock of all this.
struct Connections {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, CmId*> ids;
  std::uint64_t last = 0;
  ibv_context* context = nullptr;  ///< the one that ids see
  ibv_pd* pd = nullptr;
};
Connections& connections();

/// The process's context of the connection manager; null, and errno, without a device.
ibv_context* cm_context();
CmId* new_id(rdma_event_channel* channel, void* context, rdma_port_space space);
/// Gives the id its device.
void attach(CmId& id);
CmEvent* push_event(CmId& id, rdma_cm_event_type type, int status, const Message* from);
/// With an id whose calls wait: the event that ends the call. Otherwise 0 at once.
int finish_call(CmId& id);
/// -1 and errno.
int failed(int error);
/// The QP of a connection, from INIT to RTS.
int connect_qp(CmId& id);
int qp_attributes(CmId& id, ibv_qp_attr& attributes, int& mask);
bool send_to_peer(CmId& id, MessageKind kind, const rdma_conn_param* param);
void tell_listening();

}  // namespace greynic::lab
