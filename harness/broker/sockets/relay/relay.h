#pragma once

/// Between local sockets of a program and connections of a broker: what one side brings, the other
/// takes, as fast as the slower of the two.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "greynic_broker.h"
#include "preload/names.h"

namespace greynic::broker::sockets {

class Relay {
 public:
  Relay(greynic_broker* broker, std::map<std::string, std::string> via, int wishes);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Waits for what comes, at most so long, and does it. False when the broker has died.
  bool turn(int timeout_ms);
  [[nodiscard]] std::size_t pair_count() const { return by_socket_.size(); }

 private:
  struct Pair {
    int socket = -1;
    greynic_broker_connection* connection = nullptr;
    int answer = -1;             ///< who waits to hear whether the connection is open
    const char* data = nullptr;  ///< received, not yet given to the program
    std::size_t bytes = 0;
    bool full = false;  ///< there is no room for what the program sends
    bool program_ended = false, far_ended = false;
    std::uint32_t watched = 0;  ///< for which events, as the kernel knows
  };
  struct Place {
    greynic_broker_listener* listener = nullptr;
    sockaddr_un name{};  ///< where the program accepts
    socklen_t name_bytes = 0;
  };

  void take_wish();
  void answer_wish(int socket);
  int start_listening(const Wish& wish);
  int start_connecting(const Wish& wish, int stream, int asker);
  void accept_all(greynic_broker_listener* listener);
  void watch(int fd, std::uint32_t events);
  /// False when the pair is over.
  bool move(Pair& pair);
  bool to_program(Pair& pair);
  bool to_broker(Pair& pair);
  void end(Pair& pair);

  greynic_broker* broker_;
  std::map<std::string, std::string> via_;
  int wishes_;
  int epoll_;
  std::map<std::uint16_t, Place> places_;
  std::unordered_map<int, std::unique_ptr<Pair>> by_socket_;
  std::unordered_map<greynic_broker_connection*, Pair*> by_connection_;
  std::uint64_t accepted_ = 0;
};

}  // namespace greynic::broker::sockets
