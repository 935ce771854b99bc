#pragma once

/// greynic_broker.h for C++: handles that close themselves, errors as std::system_error, bytes as
/// spans. Nothing is added: what the C interface promises is what this promises. A Broker must
/// outlive its listeners and connections, and all of them belong to one thread at a time.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "greynic_broker.h"

namespace greynic::broker_client {

namespace detail {
/// Throws what errno says. EAGAIN and EINPROGRESS are no errors: the caller asked not to wait.
inline void check(bool failed, const char* what) {
  if (!failed || errno == EAGAIN || errno == EINPROGRESS) return;
  const std::string reason = greynic_broker_reason();
  throw std::system_error(errno, std::generic_category(),
                          reason.empty() ? what : std::string(what) + ": " + reason);
}
}  // namespace detail

/// A stream of bytes each way. Calls that find nothing to do with GREYNIC_BROKER_NONBLOCK give an
/// empty optional.
class Connection {
 public:
  explicit Connection(greynic_broker_connection* handle) : handle_(handle) {}

  /// How many bytes were taken.
  std::optional<std::size_t> send(std::span<const std::byte> bytes, int flags = 0) {
    return counted(greynic_broker_send(get(), bytes.data(), bytes.size(), flags), "send");
  }
  /// How many came; 0: the other side sends no more.
  std::optional<std::size_t> recv(std::span<std::byte> into, int flags = 0) {
    return counted(greynic_broker_recv(get(), into.data(), into.size(), flags), "recv");
  }
  /// Bytes where the RNIC has put them, until the next call that receives here; none: the other
  /// side sends no more.
  std::optional<std::span<const std::byte>> recv_zero_copy(std::size_t most, int flags = 0) {
    const void* at = nullptr;
    const auto got = counted(greynic_broker_recv_zero_copy(get(), &at, most, flags), "recv");
    if (!got) return std::nullopt;
    return std::span(static_cast<const std::byte*>(at), *got);
  }
  void finish() { detail::check(greynic_broker_finish(get()) != 0, "finish"); }
  /// Open; false: not yet.
  [[nodiscard]] bool is_open() const {
    const int state = greynic_broker_state(get());
    detail::check(state < 0, "connection");
    return state == 1;
  }
  /// Bytes that lie at the other broker for good.
  [[nodiscard]] std::uint64_t sent() const { return greynic_broker_sent(get()); }
  [[nodiscard]] greynic_broker_connection* get() const { return handle_.get(); }

 private:
  static std::optional<std::size_t> counted(ssize_t count, const char* what) {
    if (count >= 0) return static_cast<std::size_t>(count);
    detail::check(true, what);
    return std::nullopt;
  }
  struct Disconnect {
    void operator()(greynic_broker_connection* one) const { greynic_broker_disconnect(one); }
  };
  std::unique_ptr<greynic_broker_connection, Disconnect> handle_;
};

class Listener {
 public:
  explicit Listener(greynic_broker_listener* handle) : handle_(handle) {}
  std::optional<Connection> accept(int flags = 0) {
    greynic_broker_connection* one = greynic_broker_accept(get(), flags);
    if (one != nullptr) return Connection(one);
    detail::check(true, "accept");
    return std::nullopt;
  }
  [[nodiscard]] greynic_broker_listener* get() const { return handle_.get(); }

 private:
  struct Unlisten {
    void operator()(greynic_broker_listener* one) const { greynic_broker_unlisten(one); }
  };
  std::unique_ptr<greynic_broker_listener, Unlisten> handle_;
};

/// Memory from which large sends need not be copied. Its broker must outlive it.
class LentMemory {
 public:
  LentMemory(greynic_broker* broker, std::size_t bytes)
      : handle_(greynic_broker_lend(broker, bytes), {broker}), bytes_(bytes) {
    detail::check(handle_ == nullptr, "lend");
  }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(handle_.get()), bytes_};
  }

 private:
  struct TakeBack {
    greynic_broker* broker;
    void operator()(void* memory) const { (void)greynic_broker_take_back(broker, memory); }
  };
  std::unique_ptr<void, TakeBack> handle_;
  std::size_t bytes_;
};

/// An attachment to the broker of this host.
class Broker {
 public:
  explicit Broker(const char* socket = nullptr, const greynic_broker_options& options = {})
      : handle_(greynic_broker_open(socket, &options)) {
    detail::check(handle_ == nullptr, "open");
  }
  [[nodiscard]] Listener listen(std::uint16_t port, int flags = 0) {
    greynic_broker_listener* one = greynic_broker_listen(get(), port, flags);
    detail::check(one == nullptr, "listen");
    return Listener(one);
  }
  [[nodiscard]] Connection connect(const std::string& host, std::uint16_t port, int flags = 0) {
    greynic_broker_connection* one = greynic_broker_connect(get(), host.c_str(), port, flags);
    detail::check(one == nullptr, "connect");
    return Connection(one);
  }
  [[nodiscard]] LentMemory lend(std::size_t bytes) { return LentMemory(get(), bytes); }
  /// For epoll; see greynic_broker_ready.
  [[nodiscard]] int descriptor() const { return greynic_broker_fd(get()); }
  /// What has changed, at most as much as fits; returns the part of `into` that was filled.
  std::span<greynic_broker_readiness> ready(std::span<greynic_broker_readiness> into) {
    const int count = greynic_broker_ready(get(), into.data(), static_cast<int>(into.size()));
    detail::check(count < 0, "ready");
    return into.first(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  [[nodiscard]] greynic_broker* get() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(greynic_broker* one) const { greynic_broker_close(one); }
  };
  std::unique_ptr<greynic_broker, Close> handle_;
};

}  // namespace greynic::broker_client
