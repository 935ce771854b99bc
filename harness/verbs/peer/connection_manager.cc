#include "peer/connection_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "device/verbs_errors.h"

namespace greynic::verbs {
namespace {

/// What travels with a request: whose it is, and for which lane.
struct Ticket {
  std::array<char, 4> magic = {'g', 'n', 'i', 'c'};
  std::uint32_t lane = 0;  ///< in network order
};

sockaddr_storage socket_address(const Gid& gid, std::uint16_t port, const std::string& interface) {
  sockaddr_storage storage{};
  if (GidEntry{.gid = gid}.is_ipv4()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    std::memcpy(&address.sin_addr, gid.data() + 12, 4);
    std::memcpy(&storage, &address, sizeof address);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_scope_id = if_nametoindex(interface.c_str());
    std::memcpy(&address.sin6_addr, gid.data(), gid.size());
    std::memcpy(&storage, &address, sizeof address);
  }
  return storage;
}

sockaddr* generic(sockaddr_storage& storage) { return reinterpret_cast<sockaddr*>(&storage); }

std::string text_of(const Gid& gid) { return GidEntry{.gid = gid}.address(); }

rdma_conn_param parameters(std::uint32_t qp_number, const Ticket& ticket) {
  rdma_conn_param wanted{};
  wanted.private_data = &ticket;
  wanted.private_data_len = sizeof ticket;
  wanted.responder_resources = RDMA_MAX_RESP_RES;
  wanted.initiator_depth = RDMA_MAX_INIT_DEPTH;
  wanted.flow_control = 1;
  wanted.retry_count = 7;
  wanted.rnr_retry_count = 7;
  wanted.qp_num = qp_number;
  return wanted;
}

}  // namespace

struct ConnectionManager::Event {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  rdma_cm_id* id = nullptr;
  int status = 0;
  Ticket ticket;
  bool has_ticket = false;

  /// What an event that ends the attempt means.
  [[nodiscard]] std::string meaning() const {
    const char* name = rdma_event_str(type);
    switch (type) {
      case RDMA_CM_EVENT_ADDR_ERROR:
        return fmt::format("the address does not resolve ({}, errno {})", name, -status);
      case RDMA_CM_EVENT_ROUTE_ERROR:
        return fmt::format("no path leads there ({}, errno {})", name, -status);
      case RDMA_CM_EVENT_REJECTED:
        return fmt::format("rejected ({}, reason {} of the InfiniBand specification, table 12-108)",
                           name, status);
      default:
        return fmt::format("{} (status {})", name, status);
    }
  }
};

void ConnectionManager::FreeId::operator()(rdma_cm_id* id) const noexcept {
  if (rdma_destroy_id(id) != 0) log_destruction("rdma_destroy_id", errno);
}

void ConnectionManager::FreeChannel::operator()(rdma_event_channel* channel) const noexcept {
  rdma_destroy_event_channel(channel);
}

Result<std::unique_ptr<ConnectionManager>> ConnectionManager::create(const Device& device,
                                                                     const GidEntry& own) {
  std::unique_ptr<ConnectionManager> made(new ConnectionManager);
  made->device_ = device.name();
  made->own_ = own;
  made->channel_.reset(rdma_create_event_channel());
  if (!made->channel_) {
    return fail(ErrorCode::kMissing,
                fmt::format("rdma_create_event_channel: {}; `modprobe rdma_ucm` offers rdma_cm",
                            std::strerror(errno)));
  }
  // Events are waited for with a limit.
  fcntl(made->channel_->fd, F_SETFL, fcntl(made->channel_->fd, F_GETFL) | O_NONBLOCK);
  return made;
}

Result<ConnectionManager::Id> ConnectionManager::make_id() const {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    return refused("rdma_create_id", errno);
  }
  return Id(id);
}

Result<ConnectionManager::Event> ConnectionManager::next(std::chrono::milliseconds limit) const {
  pollfd waiting{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  const int ready = poll(&waiting, 1, static_cast<int>(limit.count()));
  rdma_cm_event* raw = nullptr;
  if (ready <= 0 || rdma_get_cm_event(channel_.get(), &raw) != 0) {
    return fail(ErrorCode::kIo, fmt::format("no answer within {} ms", limit.count()));
  }
  Event event{.type = raw->event, .id = raw->id, .status = raw->status};
  if (raw->event == RDMA_CM_EVENT_CONNECT_REQUEST && raw->param.conn.private_data != nullptr &&
      raw->param.conn.private_data_len >= sizeof(Ticket)) {
    std::memcpy(&event.ticket, raw->param.conn.private_data, sizeof(Ticket));
    event.has_ticket = event.ticket.magic == Ticket{}.magic;
  }
  rdma_ack_cm_event(raw);
  return event;
}

Result<void> ConnectionManager::expect(int event, std::chrono::milliseconds limit) const {
  const auto came = next(limit);
  if (!came) return pass_on(came);
  if (came->type != event) return fail(ErrorCode::kRefused, came->meaning());
  return {};
}

Result<void> ConnectionManager::make_ready(rdma_cm_id* id, std::uint32_t lane,
                                           const Ready& ready) const {
  const std::string device = id->verbs == nullptr ? "" : ibv_get_device_name(id->verbs->device);
  if (device != device_) {
    return fail(ErrorCode::kRefused, fmt::format("{} belongs to device '{}', not to {}",
                                                 own_.address(), device, device_));
  }
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  int mask = 0;
  if (rdma_init_qp_attr(id, &receive, &mask) != 0)
    return refused("rdma_init_qp_attr of RTR", errno);
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  if (rdma_init_qp_attr(id, &send, &mask) != 0) return refused("rdma_init_qp_attr of RTS", errno);
  RemoteEnd remote{.lid = receive.ah_attr.dlid,
                   .qp_number = receive.dest_qp_num,
                   .psn = receive.rq_psn,
                   .local_gid_index = receive.ah_attr.grh.sgid_index,
                   .over_ethernet = receive.ah_attr.is_global != 0};
  std::copy_n(receive.ah_attr.grh.dgid.raw, remote.gid.size(), remote.gid.begin());
  return ready(lane, remote, send.sq_psn);
}

Result<std::uint16_t> ConnectionManager::listen() {
  auto id = make_id();
  if (!id) return pass_on(id);
  sockaddr_storage address = socket_address(own_.gid, 0, own_.interface);
  if (rdma_bind_addr(id->get(), generic(address)) != 0) {
    return refused("rdma_bind_addr to " + own_.address(), errno);
  }
  constexpr int kBacklog = 16;
  if (rdma_listen(id->get(), kBacklog) != 0) return refused("rdma_listen", errno);
  listener_ = std::move(*id);
  return ntohs(rdma_get_src_port(listener_.get()));
}

Result<void> ConnectionManager::accept(const std::vector<std::uint32_t>& qp_numbers,
                                       std::chrono::milliseconds limit, const Ready& ready) {
  std::vector<bool> taken(qp_numbers.size());
  std::size_t established = 0;
  // The time is that between two of our own: strangers who knock do not lengthen it.
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  while (established < qp_numbers.size()) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last);
    const auto event = next(std::max(limit - waited, std::chrono::milliseconds(0)));
    if (!event) {
      return event.error().while_doing(fmt::format("rdma_cm at {}: {} of {} QPs connected",
                                                   own_.address(), established, qp_numbers.size()));
    }
    if (event->type == RDMA_CM_EVENT_ESTABLISHED) {
      ++established;
      last = Clock::now();
      continue;
    }
    if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      return fail(ErrorCode::kRefused,
                  fmt::format("rdma_cm at {}: {}", own_.address(), event->meaning()));
    }
    Id id(event->id);
    const std::uint32_t lane = ntohl(event->ticket.lane);
    if (!event->has_ticket || lane >= qp_numbers.size() || taken[lane]) {
      rdma_reject(id.get(), nullptr, 0);  // a stranger
      continue;
    }
    taken[lane] = true;
    last = Clock::now();
    auto done = make_ready(id.get(), lane, ready);
    const Ticket ticket{.lane = htonl(lane)};
    rdma_conn_param wanted = parameters(qp_numbers[lane], ticket);
    if (done && rdma_accept(id.get(), &wanted) != 0) done = refused("rdma_accept", errno);
    if (!done) {
      rdma_reject(id.get(), nullptr, 0);
      return done;
    }
    ids_.push_back(std::move(id));
  }
  return {};
}

Result<void> ConnectionManager::connect(const Gid& address, std::uint16_t port,
                                        const std::vector<std::uint32_t>& qp_numbers,
                                        std::chrono::milliseconds limit, const Ready& ready) {
  const auto one = [&](rdma_cm_id* id, std::uint32_t lane) -> Result<void> {
    sockaddr_storage from = socket_address(own_.gid, 0, own_.interface);
    sockaddr_storage to = socket_address(address, port, own_.interface);
    const int milliseconds = static_cast<int>(limit.count());
    if (rdma_resolve_addr(id, generic(from), generic(to), milliseconds) != 0) {
      return refused("the address does not resolve: rdma_resolve_addr", errno);
    }
    // The kernel's own limit is to end first: its verdict says more than our silence.
    if (auto done = expect(RDMA_CM_EVENT_ADDR_RESOLVED, 2 * limit); !done) return done;
    if (rdma_resolve_route(id, milliseconds) != 0) {
      return refused("no path leads there: rdma_resolve_route", errno);
    }
    if (auto done = expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 2 * limit); !done) return done;
    const Ticket ticket{.lane = htonl(lane)};
    rdma_conn_param wanted = parameters(qp_numbers[lane], ticket);
    if (rdma_connect(id, &wanted) != 0) return refused("rdma_connect", errno);
    if (auto done = expect(RDMA_CM_EVENT_CONNECT_RESPONSE, limit); !done) return done;
    if (auto done = make_ready(id, lane, ready); !done) return done;
    if (rdma_establish(id) != 0) return refused("rdma_establish", errno);
    return {};
  };
  for (std::uint32_t lane = 0; lane < qp_numbers.size(); ++lane) {
    auto id = make_id();
    if (!id) return pass_on(id);
    if (auto done = one(id->get(), lane); !done) {
      return done.error().while_doing(fmt::format("rdma_cm from {} to {} port {}, QP {} of {}",
                                                  own_.address(), text_of(address), port, lane + 1,
                                                  qp_numbers.size()));
    }
    ids_.push_back(std::move(*id));
  }
  return {};
}

}  // namespace greynic::verbs
