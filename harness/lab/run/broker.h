#pragma once

/// The process or thread that a lab meets at: it gives processes their slots, hands rings from one
/// to the other, keeps the ports of the connection manager, and tells who is gone. No data passes
/// through it.

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "protocol/messages.h"

namespace greynic::lab {

class Broker {
 public:
  /// `listener`: of listen_at(), or -1 where all who come are brought by welcome().
  explicit Broker(int listener);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Serves until everybody who came has left, or `stop` is readable (-1: never).
  void serve(int stop);

  /// A connection that came some other way; it never waits. Of another user: closed.
  void welcome(int fd);
  /// Waits for so long until anybody says anything, and hears each once. False: everybody who came
  /// has left, or `stop` is readable.
  [[nodiscard]] bool serve_once(int stop, std::chrono::milliseconds patience);

 private:
  struct Letter {
    Message message;
    int first = -1, second = -1;
  };
  struct Client {
    int fd = -1;
    bool is_run = false;     ///< a lab-run, not a process of the lab
    std::uint32_t slot = 0;  ///< 0: has not said hello
    std::uint32_t host = 0;
    int bell = -1;
    std::deque<Letter> outbox;  ///< what its socket did not take yet
  };
  struct Port {
    std::uint32_t slot = 0;
    std::uint64_t id = 0;
    bool listens = false;
  };
  /// A request that came before anybody listened. Programs that listen twice in a row are often
  /// slower than their client, as they are not on a network.
  struct Early {
    Message message;
    std::uint32_t slot = 0;
    std::chrono::steady_clock::time_point until;
  };
  struct PortName {
    std::uint32_t host = 0, space = 0;
    std::uint16_t port = 0;
    auto operator<=>(const PortName&) const = default;
  };

  void take_network();
  /// False: it is gone.
  bool on_readable(Client& client);
  void on_host(Client& client, const Message& message);
  void on_hello(Client& client, Message message, int bell);
  void on_ring(Client& client, const Message& message, int ring);
  void on_bind(Client& client, Message message);
  void on_connect(Client& client, const Message& message);
  /// False: nobody listens there.
  bool deliver(const Client& client, Message message);
  void retry_early();
  void on_leave(int fd);
  void send(Client& client, const Message& message, int first = -1, int second = -1);
  static void flush(Client& client);
  Client* by_slot(std::uint32_t slot);
  std::uint32_t new_slot();

  int listener_, network_lock_ = -1;
  std::uint32_t network_ = 0, last_slot_ = 0;
  std::map<int, Client> clients_;  ///< by descriptor
  std::map<std::uint32_t, DeviceCard> cards_;
  std::map<PortName, Port> ports_;
  std::vector<Early> early_;
  std::uint16_t last_port_ = 32768;
  bool anyone_ = false;  ///< has come
};

}  // namespace greynic::lab
