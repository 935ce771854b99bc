#include "peers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "greynic/daemon/door.h"
#include "greynic/daemon/log.h"

namespace greynic::broker {
namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_ipv4(const BrokerAddress& address) {
  return std::equal(std::begin(kMapped), std::end(kMapped), address.address.begin());
}

socklen_t fill(const BrokerAddress& from, sockaddr_storage& to) {
  to = {};
  if (is_ipv4(from)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(to);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(from.port);
    std::memcpy(&v4.sin_addr, from.address.data() + 12, 4);
    return sizeof v4;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(to);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(from.port);
  std::memcpy(&v6.sin6_addr, from.address.data(), 16);
  return sizeof v6;
}

BrokerAddress far_end(int socket) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  BrokerAddress far;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return far;
  if (name.ss_family == AF_INET) {
    std::copy(std::begin(kMapped), std::end(kMapped), far.address.begin());
    std::memcpy(far.address.data() + 12, &reinterpret_cast<sockaddr_in&>(name).sin_addr, 4);
  } else {
    std::memcpy(far.address.data(), &reinterpret_cast<sockaddr_in6&>(name).sin6_addr, 16);
  }
  return far;
}

}  // namespace

std::string text_of(const BrokerAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(address)) {
    inet_ntop(AF_INET, address.address.data() + 12, text, sizeof text);
    return fmt::format("{}:{}", text, address.port);
  }
  inet_ntop(AF_INET6, address.address.data(), text, sizeof text);
  return fmt::format("[{}]:{}", text, address.port);
}

Result<BrokerAddress> broker_address(const std::string& text) {
  const auto wrong = fail(
      ErrorCode::kBadInput,
      fmt::format("{}: is no ADDRESS:PORT in numbers, such as 10.0.0.7:18700 or [fd00::7]:18700",
                  text));
  if (!daemon::is_listen_address(text)) return wrong;
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  BrokerAddress made;
  made.port = static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)));
  if (inet_pton(AF_INET, host.c_str(), made.address.data() + 12) == 1) {
    std::copy(std::begin(kMapped), std::end(kMapped), made.address.begin());
    return made;
  }
  if (inet_pton(AF_INET6, host.c_str(), made.address.data()) != 1) return wrong;
  return made;
}

Peers::Peers(const Hello& own, const BrokerAddress& listens, std::chrono::seconds silence,
             std::unique_ptr<LinkSecurity> security, Calls calls)
    : own_(own),
      listens_(listens),
      silence_(silence),
      security_(std::move(security)),
      calls_(std::move(calls)) {}

PeerId Peers::reach(const BrokerAddress& address) {
  if (const auto found = reached_.find(address); found != reached_.end()) return found->second;
  if (awaited_.contains(address)) return 0;
  awaited_[address] = Clock::now() + silence_;
  dial(address);
  return 0;
}

std::optional<BrokerAddress> Peers::with_lid(std::uint16_t lid) const {
  for (const auto& [socket, link] : links_) {
    if (link->peer != 0 && link->lid == lid && link->far.port != 0) return link->far;
  }
  return std::nullopt;
}

void Peers::dial(const BrokerAddress& address) {
  sockaddr_storage to{}, from{};
  const socklen_t bytes = fill(address, to);
  const int socket = ::socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  BrokerAddress own = listens_;
  own.port = 0;
  const bool any = std::all_of(own.address.begin(), own.address.end(),
                               [](std::uint8_t byte) { return byte == 0; }) ||
                   text_of(own) == "0.0.0.0:0";
  // The far side knows us by the address that we come from.
  if (!any && is_ipv4(own) == is_ipv4(address)) {
    const socklen_t own_bytes = fill(own, from);
    (void)bind(socket, reinterpret_cast<sockaddr*>(&from), own_bytes);
  }
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  auto link = std::make_unique<Link>(
      socket, security_ ? security_->dial(socket, address.address) : nullptr);
  link->far = address;
  link->dialed = true;
  link->heard = Clock::now();
  links_[socket] = std::move(link);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&to), bytes) != 0 && errno != EINPROGRESS) {
    return end(socket, std::strerror(errno));
  }
  links_[socket]->stream.send(MessageKind::kHello, std::as_bytes(std::span(&own_, 1)));
  calls_.watch(socket, true);
}

void Peers::take(int socket) {
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  auto link = std::make_unique<Link>(socket, security_ ? security_->answer(socket) : nullptr);
  link->far = far_end(socket);
  link->heard = Clock::now();
  links_[socket] = std::move(link);
  calls_.watch(socket, false);
  move(socket);
}

void Peers::move(int socket) {
  const auto found = links_.find(socket);
  if (found == links_.end()) return;
  Link& link = *found->second;
  const bool open = link.stream.move();
  while (const auto message = link.stream.next()) {
    link.heard = Clock::now();
    handle(link, *message);
    if (!links_.contains(socket)) return;
  }
  if (!open || !link.stream.end().empty()) return end(socket, link.stream.end());
  calls_.watch(socket, link.stream.wants_to_write());
}

void Peers::handle(Link& link, const Message& message) {
  if (message.kind == MessageKind::kHello && link.peer == 0) return greet(link, message);
  if (message.kind == MessageKind::kRefuse && link.peer == 0) {
    const std::string why(reinterpret_cast<const char*>(message.body.data()), message.body.size());
    link.yields = why == "yours";
    return end(link.stream.socket(), "it refuses: " + daemon::plain(why));
  }
  if (message.kind == MessageKind::kCall && link.peer != 0) {
    return calls_.on_call(link.peer, message.body);
  }
  if (message.kind == MessageKind::kBeat && link.peer != 0) return;
  end(link.stream.socket(), "its message is none");
}

void Peers::refuse(Link& link, const std::string& why) {
  link.stream.send(MessageKind::kRefuse, std::as_bytes(std::span(why.data(), why.size())));
  (void)link.stream.move();
  end(link.stream.socket(), why == "yours" ? "both dialed; ours counts" : why);
}

void Peers::greet(Link& link, const Message& message) {
  Hello hello;
  if (message.body.size() != sizeof hello) return refuse(link, "your hello has another length");
  std::memcpy(&hello, message.body.data(), sizeof hello);
  if (hello.magic != own_.magic) return refuse(link, "you speak another version");
  if (hello.lanes != own_.lanes) {
    return refuse(link, fmt::format("you have {} QPs for a peer and we have {}; give both brokers "
                                    "the same numbers",
                                    hello.lanes, own_.lanes));
  }
  const int socket = link.stream.socket();
  if (!link.dialed) {
    link.far.port = hello.port;
    const auto dialing = std::find_if(links_.begin(), links_.end(), [&](const auto& entry) {
      return entry.second->dialed && entry.second->peer == 0 && entry.second->far == link.far;
    });
    const auto old = reached_.find(link.far);
    const Link* known = old == reached_.end() ? nullptr : link_of(old->second);
    const bool have_it = known != nullptr && known->number == hello.number;
    const bool ours_counts = dialing != links_.end() && own_.number < hello.number;
    if (have_it || ours_counts) return refuse(link, "yours");
    if (known != nullptr) hang_up(old->second, "another broker has come in its place");
    calls_.on_proven(daemon::peer_of(socket));
    link.stream.send(MessageKind::kHello, std::as_bytes(std::span(&own_, 1)));
  }
  link.number = hello.number;
  link.lid = hello.lid;
  link.peer = next_++;
  if (link.far.port != 0) reached_[link.far] = link.peer;
  const PeerId peer = link.peer;
  const BrokerAddress far = link.far;
  if (!calls_.on_up(peer)) return end(socket, "no QP can be made for it");
  calls_.watch(socket, true);
  if (awaited_.erase(far) > 0) calls_.on_answer(far, peer, 0);
}

void Peers::end(int socket, const std::string& why) {
  const auto found = links_.find(socket);
  if (found == links_.end()) return;
  const std::unique_ptr<Link> link = std::move(found->second);
  links_.erase(found);
  calls_.forget(socket);
  if (link->peer != 0) {
    const auto reached = reached_.find(link->far);
    if (reached != reached_.end() && reached->second == link->peer) reached_.erase(reached);
    calls_.tell(fmt::format("the link to {} is over: {}", text_of(link->far), why));
    calls_.on_down(link->peer);
  } else if (link->dialed && !link->yields) {
    calls_.tell(fmt::format("{} cannot be reached: {}", text_of(link->far), why));
    if (awaited_.erase(link->far) > 0) calls_.on_answer(link->far, 0, ECONNREFUSED);
  }
}

Peers::Link* Peers::link_of(PeerId peer) {
  for (const auto& [socket, link] : links_) {
    if (link->peer == peer) return link.get();
  }
  return nullptr;
}

void Peers::call(PeerId peer, std::span<const std::byte> bytes) {
  Link* link = link_of(peer);
  if (link == nullptr) return;
  link->stream.send(MessageKind::kCall, bytes);
  calls_.watch(link->stream.socket(), true);
}

void Peers::hang_up(PeerId peer, const std::string& why) {
  if (Link* link = link_of(peer)) end(link->stream.socket(), why);
}

void Peers::tick(Clock::time_point now) {
  const bool reread = security_ != nullptr && now - security_read_ >= kBeat;
  if (reread) {
    security_read_ = now;
    if (const std::string wrong = security_->refresh(); !wrong.empty()) calls_.tell(wrong);
  }
  std::vector<std::pair<int, Link*>> all;
  for (const auto& [socket, link] : links_) all.emplace_back(socket, link.get());
  for (const auto& [socket, link] : all) {
    if (!links_.contains(socket)) continue;
    if (reread && link->stream.tls() != nullptr && security_->is_revoked(link->stream.tls())) {
      end(socket, "its certificate was revoked");
    } else if (now - link->heard > silence_) {
      end(socket, fmt::format("it was silent for {} s", silence_.count()));
    } else if (link->peer != 0 && now - link->beat >= kBeat) {
      link->beat = now;
      link->stream.send(MessageKind::kBeat, {});
      move(socket);
    }
  }
  std::vector<BrokerAddress> late;
  for (const auto& [address, until] : awaited_) {
    if (until < now) late.push_back(address);
  }
  for (const BrokerAddress& address : late) {
    awaited_.erase(address);
    calls_.on_answer(address, 0, ETIMEDOUT);
  }
}

std::array<std::uint8_t, 16> Peers::address_of(PeerId peer) {
  const Link* link = link_of(peer);
  return link == nullptr ? std::array<std::uint8_t, 16>{} : link->far.address;
}

std::vector<std::pair<std::string, PeerId>> Peers::list() const {
  std::vector<std::pair<std::string, PeerId>> all;
  for (const auto& [socket, link] : links_) {
    if (link->peer != 0) all.emplace_back(text_of(link->far), link->peer);
  }
  return all;
}

}  // namespace greynic::broker
