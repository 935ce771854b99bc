// What comes to a broker from outside: applications, other brokers, events of the device.

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "greynic/daemon/hang_up.h"
#include "greynic/daemon/leases.h"
#include "greynic/daemon/log.h"
#include "server.h"

namespace greynic::broker {

/// What can be said before there is a device.
Result<void> Server::check_options() const {
  for (const auto& [lid, text] : options_.lids) {
    if (const auto address = broker_address(text); !address) {
      return address.error().while_doing(fmt::format("--lid {}={}", lid, text));
    }
  }
  if (options_.listen.empty()) return {};
  if (!daemon::is_listen_address(options_.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--listen {}: is no ADDRESS:PORT, such as 10.0.0.7:18700 or "
                            "[fd00::7]:18700",
                            options_.listen));
  }
  if (options_.certificates.empty() && !daemon::is_loopback(options_.listen)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("--listen {}: beyond loopback other brokers must prove who they are; "
                            "add --certificates DIR",
                            options_.listen));
  }
  return {};
}

Result<void> Server::open_doors() {
  auto attachments = Attachments::open(options_.socket);
  if (!attachments) return pass_on(attachments);
  attachments_ = std::move(*attachments);
  std::unique_ptr<LinkSecurity> security;
  if (!options_.certificates.empty()) {
    auto opened = LinkSecurity::open(options_.certificates);
    if (!opened) return pass_on(opened);
    security = std::move(*opened);
  }
  if (!options_.listen.empty()) {
    auto door = daemon::Door::open(options_.listen, {}, [this](int socket) {
      {
        const std::lock_guard lock(handed_mutex_);
        handed_.push_back(socket);
      }
      const std::uint64_t one = 1;
      (void)!::write(handed_event_, &one, sizeof one);
    });
    if (!door) return pass_on(door);
    door_ = std::move(*door);
    address_ = door_->address();
    const auto at = broker_address(address_);
    if (!at) return pass_on(at);
    listens_ = *at;
  }
  const Hello hello{
      .lanes = static_cast<std::uint16_t>(options_.core.latency_lanes + options_.core.bulk_lanes),
      .port = listens_.port,
      .number = daemon::unguessable_id(),
      .lid = device_->lid()};
  peers_ = std::make_unique<Peers>(
      hello, listens_, options_.silence, std::move(security),
      Peers::Calls{
          .on_up = [this](PeerId peer) { return core_->add_peer(peer).has_value(); },
          .on_down = [this](PeerId peer) { lost_.push_back(peer); },
          .on_call = [this](PeerId peer,
                            std::span<const std::byte> bytes) { core_->on_peer_call(peer, bytes); },
          .on_answer =
              [this](const BrokerAddress& address, PeerId peer, int error) {
                const auto [first, last] = waiting_.equal_range(address);
                for (auto entry = first; entry != last; ++entry) {
                  Application* app = find(entry->second.first);
                  if (app == nullptr) continue;
                  touched_.push_back(entry->second.first);
                  if (error == 0) app->connect_to(peer, entry->second.second);
                  if (error != 0) app->fail_connect(entry->second.second.value, error);
                }
                waiting_.erase(first, last);
              },
          .tell = [this](const std::string& line) { options_.tell(line); },
          .watch = [this](int socket, bool also_write) { watch(socket, also_write); },
          .forget = [this](int socket) { (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr); },
          .on_proven =
              [this](const std::string& name) {
                if (door_) (void)door_->proven(name);
              }});
  return {};
}

void Server::watch(int fd, bool also_write) {
  epoll_event event{};
  event.events = EPOLLIN | (also_write ? EPOLLOUT : 0U);
  event.data.fd = fd;
  // A closed descriptor leaves by itself and its number may come again: so both ways are tried.
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) {
    (void)epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
}

void Server::on_ready(int fd) {
  if (fd == kDoorbell) return;  // all rings are looked at after this
  if (fd == device_->event_fd()) return device_->take_events();
  if (fd == device_->async_fd()) return take_async();
  if (fd == handed_event_) return take_handed();
  if (fd == attachments_->listener()) {
    return attachments_->take([this](int socket) { watch(socket, false); });
  }
  if (attachments_->waits(fd)) {
    return attachments_->read(fd, [this](const Visitor& who, const local::Attach& wish,
                                         int memory) { attach(who, wish, memory); });
  }
  const auto found = by_socket_.find(fd);
  if (found == by_socket_.end()) return peers_->move(fd);
  read_packets(found->second, fd);
}

/// Single bytes, which wake, and memory that is lent.
void Server::read_packets(AppId id, int socket) {
  for (int i = 0; i < 64; ++i) {
    local::Lend wish;
    int memory = -1;
    const ssize_t got = receive_packet(socket, &wish, sizeof wish, memory);
    const bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    if (gone) cut_off(id, "");
    if (got <= 0) return;
    Application& app = *applications_.at(id);
    if (got == static_cast<ssize_t>(sizeof wish) && wish.magic == local::kMagic) {
      app.lend(wish, memory);
      touched_.push_back(id);
    }
    daemon::close_apart(memory);
    if (!app.broken().empty()) return cut_off(id, app.broken());
    if (got == 1) return;  // that was the wake; if more is there, we are called again
  }
}

void Server::take_async() {
  const auto failed = device_->take_async();
  if (!failed) return options_.tell(failed.error().message);
  for (const QpNumber qp : *failed) core_->on_qp_error(qp);
}

void Server::take_handed() {
  std::uint64_t count = 0;
  (void)!::read(handed_event_, &count, sizeof count);
  std::vector<int> sockets;
  {
    const std::lock_guard lock(handed_mutex_);
    sockets.swap(handed_);
  }
  for (const int socket : sockets) peers_->take(socket);
}

void Server::attach(const Visitor& who, const local::Attach& wish, int memory) {
  const auto refuse = [&](int error, const std::string& why) {
    ++refusals_;
    answer(who.socket, error, why);
    daemon::hang_up(who.socket);
  };
  if (wish.kind != local::Attach::Kind::kAttach) {
    if (who.uid != 0 && who.uid != geteuid()) {
      return refuse(EPERM, "only root and the broker's own user may ask for its status");
    }
    const std::string text = wish.kind == local::Attach::Kind::kDecisions ? decisions() : status();
    (void)::send(who.socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    daemon::hang_up(who.socket);
    return;
  }
  Holdings& holdings = holdings_[who.uid];
  if (holdings.applications >= options_.quota.applications) {
    return refuse(EDQUOT, "this user has too many applications attached");
  }
  if (wish.bytes > options_.quota.segment_bytes -
                       std::min(holdings.segment_bytes, options_.quota.segment_bytes)) {
    return refuse(EDQUOT, fmt::format("segments of this user may have {} bytes together",
                                      options_.quota.segment_bytes));
  }
  auto segment = Segment::map(memory, wish.bytes);
  if (!segment) return refuse(EINVAL, segment.error().message);
  const int doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (doorbell < 0) return refuse(errno, "the broker has no descriptor left; raise its ulimit -n");
  auto app = std::make_unique<Application>(who.socket, doorbell, who.pid, who.uid,
                                           std::move(*segment), *core_, options_.quota, holdings);
  const auto id = core_->attach(app->segment());
  if (!id) {
    // The application's destructor closes the socket.
    ++refusals_;
    return answer(who.socket, ENOMEM, id.error().message);
  }
  ++attached_;
  app->set_id(*id);
  applications_[*id] = std::move(app);
  by_socket_[who.socket] = *id;
  // Each write tells anew, so it need not be read: whatever its other owner does to it, it wakes.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = kDoorbell}};
  (void)epoll_ctl(epoll_, EPOLL_CTL_ADD, doorbell, &event);
  answer(who.socket, 0, "", costs_, doorbell);
}

/// It has gone (no reason) or breaks the rules.
void Server::cut_off(AppId id, const std::string& why) {
  Application* app = find(id);
  if (app == nullptr || app->socket() < 0) return;
  if (!why.empty()) {
    ++cut_offs_;
    last_cut_off_ = fmt::format("process {} of user {}: {}", app->pid(), app->uid(), why);
    options_.tell("cut off " + last_cut_off_);
    answer(app->socket(), EPROTO, why);
  }
  by_socket_.erase(app->socket());
  // The application has it too, so that closing it here would not end it.
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, app->doorbell(), nullptr);
  app->hang_up();
  core_->detach(id);
}

bool Server::is_self(const BrokerAddress& address) const {
  if (address == listens_ && listens_.port != 0) return true;
  return (address.port == listens_.port || listens_.port == 0) &&
         daemon::is_loopback(text_of(address)) &&
         (text_of(address).starts_with("127.0.0.1:") || text_of(address).starts_with("[::1]:"));
}

/// A LID has no address: it is one of a list, or of a broker that was met.
std::optional<BrokerAddress> Server::target_of(const local::Request& request) const {
  if (request.lid != 0) {
    const auto known = options_.lids.find(request.lid);
    if (known == options_.lids.end()) return peers_->with_lid(request.lid);
    const auto address = broker_address(known->second);
    return address ? std::optional(*address) : std::nullopt;
  }
  BrokerAddress address{request.target, request.peer_port};
  if (address.port == 0) address.port = listens_.port != 0 ? listens_.port : kUsualPort;
  return address;
}

void Server::connect(AppId id, const local::Request& request) {
  Application& app = *applications_.at(id);
  const auto target = target_of(request);
  if (!target) return app.fail_connect(request.value, EHOSTUNREACH);
  const BrokerAddress& address = *target;
  const Clock::time_point asked = Clock::now();
  if (is_self(address)) return app.connect_to(kSelfOut, request);
  // It may fail at once, and then answers before reach() returns.
  const auto entry = waiting_.emplace(address, std::pair{id, request});
  const PeerId peer = peers_->reach(address);
  if (peer == 0) return;
  waiting_.erase(entry);
  asked_.push_back(asked);
  app.connect_to(peer, request);
}

}  // namespace greynic::broker
