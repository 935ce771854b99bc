#include "run/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace greynic::lab {

Broker::Broker(int listener) : listener_(listener) { take_network(); }

Broker::~Broker() {
  while (!clients_.empty()) on_leave(clients_.begin()->first);
  close(listener_);
  if (network_lock_ >= 0) close(network_lock_);
}

/// A net of the loopback range that no other lab of this machine has.
void Broker::take_network() {
  static constexpr std::uint32_t kFirst = 64, kCount = 190;
  const auto start = static_cast<std::uint32_t>(getpid());
  for (std::uint32_t i = 0; i < kCount && network_lock_ < 0; ++i) {
    network_ = kFirst + (start + i) % kCount;
    network_lock_ = listen_at("greynic-lab-network-" + std::to_string(network_));
  }
}

void Broker::serve(int stop) {
  constexpr std::chrono::milliseconds kForever(-1), kRetry(50);
  while (serve_once(stop, early_.empty() ? kForever : kRetry)) {
  }
}

bool Broker::serve_once(int stop, std::chrono::milliseconds patience) {
  if (anyone_ && clients_.empty()) return false;
  std::vector<pollfd> waits = {{listener_, POLLIN, 0}, {stop, POLLIN, 0}};
  for (const auto& [fd, client] : clients_) {
    const bool owes = !client.outbox.empty();
    waits.push_back({fd, static_cast<short>(POLLIN | (owes ? POLLOUT : 0)), 0});
  }
  if (poll(waits.data(), waits.size(), static_cast<int>(patience.count())) < 0 && errno != EINTR) {
    return false;
  }
  retry_early();
  if (waits[1].revents != 0) return false;
  if (waits[0].revents & POLLIN) {
    // Sending never waits: a process that is stopped must not stop the lab.
    welcome(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  for (std::size_t i = 2; i < waits.size(); ++i) {
    const auto found = clients_.find(waits[i].fd);
    if (found == clients_.end()) continue;
    if (waits[i].revents & POLLOUT) flush(found->second);
    if ((waits[i].revents & (POLLIN | POLLHUP | POLLERR)) && !on_readable(found->second)) {
      on_leave(waits[i].fd);
    }
  }
  return true;
}

void Broker::welcome(int fd) {
  if (fd < 0) return;
  ucred who{};
  socklen_t bytes = sizeof who;
  // The lab belongs to one user: its processes share memory.
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.uid != geteuid()) {
    close(fd);
    return;
  }
  anyone_ = true;
  clients_[fd].fd = fd;
}

bool Broker::on_readable(Client& client) {
  Message message;
  Descriptors descriptors;
  if (!receive_message(client.fd, message, descriptors)) return false;
  switch (message.kind) {
    case MessageKind::kHost:
      on_host(client, message);
      break;
    case MessageKind::kHello:
      on_hello(client, message, descriptors.take(0));
      break;
    case MessageKind::kListens:
      for (auto& [fd, other] : clients_) {
        if (other.is_run && other.host == message.host) send(other, message);
      }
      break;
    case MessageKind::kOpenRing:
      on_ring(client, message, descriptors.fds[0]);
      break;
    case MessageKind::kBindPort:
      on_bind(client, message);
      break;
    case MessageKind::kListenPort:
    case MessageKind::kFreePort: {
      const auto found = ports_.find({client.host, message.port_space, message.port});
      if (found == ports_.end() || found->second.slot != client.slot) break;
      if (message.kind == MessageKind::kFreePort) {
        ports_.erase(found);
      } else {
        found->second.listens = true;
        retry_early();
      }
      break;
    }
    case MessageKind::kConnect:
      on_connect(client, message);
      break;
    default: {
      Client* const to = by_slot(message.slot);
      message.slot = client.slot;
      message.host = client.host;
      if (to) send(*to, message);
    }
  }
  return true;
}

void Broker::on_host(Client& client, const Message& message) {
  if (client.is_run) return;  // has its seat
  const auto [at, is_new] = cards_.try_emplace(message.host, message.card);
  const bool in_use = std::any_of(clients_.begin(), clients_.end(), [&](const auto& row) {
    return row.second.host == message.host && (row.second.is_run || row.second.slot != 0);
  });
  Message reply{.kind = MessageKind::kWelcome};
  reply.network = network_;
  if (!(at->second == message.card) && in_use) {
    reply.error = EEXIST;
    reply.card = at->second;
  } else {
    at->second = message.card;
    client.is_run = true;
    client.host = message.host;
  }
  send(client, reply);
}

void Broker::on_hello(Client& client, Message message, int bell) {
  const auto card = cards_.find(message.host);
  Message reply{.kind = MessageKind::kAdmitted};
  reply.network = network_;
  const std::uint32_t slot = new_slot();
  if (client.slot != 0) {
    reply.error = EEXIST;  // a process has one place
  } else if (card == cards_.end()) {
    reply.error = ENODEV;
  } else if (slot == 0) {
    reply.error = ENOSPC;
  } else {
    client.slot = reply.slot = slot;
    client.host = message.host;
    client.bell = bell;
    reply.card = card->second;
  }
  if (client.bell != bell && bell >= 0) close(bell);
  send(client, reply);
}

std::uint32_t Broker::new_slot() {
  for (std::uint32_t tries = 1; tries < kMostSlots; ++tries) {
    last_slot_ = last_slot_ % (kMostSlots - 1) + 1;
    if (!by_slot(last_slot_)) return last_slot_;
  }
  return 0;
}

Broker::Client* Broker::by_slot(std::uint32_t slot) {
  const auto found = std::find_if(clients_.begin(), clients_.end(),
                                  [&](const auto& row) { return row.second.slot == slot; });
  return slot == 0 || found == clients_.end() ? nullptr : &found->second;
}

void Broker::on_ring(Client& client, const Message& message, int ring) {
  Client* const to = by_slot(message.slot);
  if (!to || ring < 0) return send(client, {.kind = MessageKind::kGone, .slot = message.slot});
  send(*to, {.kind = MessageKind::kRing, .slot = client.slot, .host = client.host}, ring,
       client.bell);
  send(client, {.kind = MessageKind::kRingOpened, .slot = to->slot, .host = to->host}, to->bell);
}

void Broker::on_bind(Client& client, Message message) {
  const auto name_of = [&](std::uint16_t port) {
    return PortName{client.host, message.port_space, port};
  };
  message.error = 0;
  if (message.port == 0) {
    for (int tries = 0;
         tries < 32768 && (message.port == 0 || ports_.contains(name_of(message.port))); ++tries) {
      last_port_ = last_port_ == 65535 ? 32768 : static_cast<std::uint16_t>(last_port_ + 1);
      message.port = last_port_;
    }
  }
  if (!ports_.try_emplace(name_of(message.port), Port{client.slot, message.from_id}).second) {
    message.error = EADDRINUSE;
  }
  send(client, message);
}

void Broker::on_connect(Client& client, const Message& message) {
  static constexpr std::chrono::milliseconds kPatience(500);
  if (deliver(client, message)) return;
  early_.push_back({message, client.slot, std::chrono::steady_clock::now() + kPatience});
}

void Broker::retry_early() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(early_, [&](const Early& request) {
    Client* const from = by_slot(request.slot);
    if (!from || deliver(*from, request.message)) return true;
    if (request.until > now) return false;
    Message refusal = request.message;
    refusal.kind = MessageKind::kReject;
    refusal.to_id = refusal.from_id;
    refusal.error = ECONNREFUSED;
    refusal.private_bytes = 0;
    send(*from, refusal);
    return true;
  });
}

/// An address of this lab is one host; any other is this machine, where all hosts are.
bool Broker::deliver(const Client& client, Message message) {
  const bool of_lab = message.to_address >> 16 == (127U << 8 | network_);
  auto found = ports_.end();
  for (auto at = ports_.begin(); at != ports_.end(); ++at) {
    const PortName& name = at->first;
    if (name.port != message.port || name.space != message.port_space) continue;
    if (!at->second.listens) continue;
    const bool there = of_lab ? address_of(network_, name.host) == message.to_address
                              : found == ports_.end() || name.host == client.host;
    if (there) found = at;
  }
  Client* const to = found == ports_.end() ? nullptr : by_slot(found->second.slot);
  if (!to) return false;
  message.to_id = found->second.id;
  message.slot = client.slot;
  message.host = client.host;
  message.from_address = address_of(network_, client.host);
  message.to_address = address_of(network_, to->host);
  send(*to, message);
  return true;
}

void Broker::on_leave(int fd) {
  const auto found = clients_.find(fd);
  if (found == clients_.end()) return;
  const Client gone = std::move(found->second);
  clients_.erase(found);
  for (const Letter& letter : gone.outbox) {
    if (letter.first >= 0) close(letter.first);
    if (letter.second >= 0) close(letter.second);
  }
  close(fd);
  if (gone.bell >= 0) close(gone.bell);
  if (gone.slot == 0) return;
  std::erase_if(ports_, [&](const auto& row) { return row.second.slot == gone.slot; });
  for (auto& [other_fd, other] : clients_) {
    if (other.slot != 0) send(other, {.kind = MessageKind::kGone, .slot = gone.slot});
  }
}

void Broker::send(Client& client, const Message& message, int first, int second) {
  // Descriptors may be closed before the letter leaves.
  const auto copy = [](int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); };
  client.outbox.push_back({message, copy(first), copy(second)});
  flush(client);
}

void Broker::flush(Client& client) {
  while (!client.outbox.empty()) {
    const Letter& letter = client.outbox.front();
    if (!send_message(client.fd, letter.message, letter.first, letter.second) && errno == EAGAIN) {
      return;
    }
    if (letter.first >= 0) close(letter.first);
    if (letter.second >= 0) close(letter.second);
    client.outbox.pop_front();
  }
}

}  // namespace greynic::lab
