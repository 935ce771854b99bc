#include "listening.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "greynic/daemon/door.h"

namespace greynic::daemon {
namespace {

constexpr int kBacklog = 1024;

struct Place {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};

std::optional<Place> place_of(std::string_view listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  std::string_view host = listen.substr(0, colon);
  if (host.find(':') != std::string_view::npos) {
    if (host.size() < 3 || host.front() != '[' || host.back() != ']') return {};
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]") != std::string_view::npos) {
    return {};
  }
  Place place{.host = std::string(host)};
  const char* const end = listen.data() + listen.size();
  const auto [stop, error] = std::from_chars(listen.data() + colon + 1, end, place.port);
  if (error != std::errc{} || stop != end) return {};
  return place;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

/// -1 and errno when this address cannot be listened at.
int listen_at(const addrinfo& where, std::uint16_t port) {
  sockaddr_storage address{};
  std::memcpy(&address, where.ai_addr, where.ai_addrlen);
  if (where.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
  const int made = socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  // Not SO_REUSEPORT: two daemons on one port would take turns; a second one is a mistake.
  const int on = 1;
  const int off = 0;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // [::] takes IPv4 as well.
  if (where.ai_family == AF_INET6) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(made, reinterpret_cast<sockaddr*>(&address), where.ai_addrlen) == 0 &&
      ::listen(made, kBacklog) == 0) {
    return made;
  }
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

}  // namespace

bool is_listen_address(std::string_view listen) { return place_of(listen).has_value(); }

bool is_loopback(std::string_view listen) {
  const std::string host(listen.substr(0, listen.rfind(':')));
  in_addr number{};
  if (inet_pton(AF_INET, host.c_str(), &number) == 1) return (ntohl(number.s_addr) >> 24) == 127;
  return host == "localhost" || host == "[::1]";
}

std::string peer_of(int socket) {
  sockaddr_storage far{};
  socklen_t length = sizeof far;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&far), &length) != 0) return {};
  if (far.ss_family != AF_UNIX) return text_of(far, true);
  const std::string_view name(reinterpret_cast<const char*>(&far), length);
  return std::string(name.substr(name.rfind('/') + 1));  // of a relay, which names itself so
}

Result<Listening> listen_at(const std::string& listen) {
  const auto place = place_of(listen);
  if (!place) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: not ADDRESS:PORT, such as 0.0.0.0:18600 or [::]:18600", listen));
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(place->host.c_str(), nullptr, &wanted, &found); error != 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot listen on {}: {}", listen, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  Listening made;
  std::uint16_t port = place->port;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = listen_at(*one, port);
    if (socket < 0) {
      error = errno;
      // A name may have an address of a family that this host has switched off.
      if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) continue;
      break;
    }
    made.sockets.push_back(socket);
    port = port_of(socket);
    error = 0;
  }
  if (made.sockets.empty() || (error != 0 && error != EADDRNOTAVAIL && error != EAFNOSUPPORT)) {
    for (const int socket : made.sockets) close(socket);
    const std::string remedy = error == EADDRINUSE ? "; port 0 takes a free one" : "";
    return fail(ErrorCode::kIo,
                fmt::format("cannot listen on {}: {}{}", listen, std::strerror(error), remedy));
  }
  made.address = fmt::format("{}:{}", listen.substr(0, listen.rfind(':')), port);
  return made;
}

std::string text_of(const sockaddr_storage& address, bool with_port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto told = [&](std::string_view open, std::string_view close, std::uint16_t port) {
    std::string made = fmt::format("{}{}{}", open, text.data(), close);
    return with_port ? fmt::format("{}:{}", made, ntohs(port)) : made;
  };
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return told("", "", four.sin_port);
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text.data(), text.size());
    return told("", "", six.sin6_port);
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  return told("[", "]", six.sin6_port);
}

}  // namespace greynic::daemon
