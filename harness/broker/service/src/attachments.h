#pragma once

/// The unix socket at which applications attach: who they are, by the kernel's word, and the first
/// packet of each.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "greynic/broker/local.h"
#include "greynic/core/result.h"

namespace greynic::broker {

struct Visitor {
  int socket = -1;
  pid_t pid = 0;
  uid_t uid = 0;
};

class Attachments {
 public:
  using Clock = std::chrono::steady_clock;
  /// kIo when another broker listens there, or the folder cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<Attachments>> open(const std::string& path);
  ~Attachments();
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  [[nodiscard]] int listener() const { return listener_; }
  /// Takes who knocks; `watch` each socket for reading.
  void take(const std::function<void(int socket)>& watch);
  [[nodiscard]] bool waits(int socket) const { return waiting_.contains(socket); }
  /// Reads the first packet of a socket that waits. When it is whole the socket waits no more and
  /// `call` has it, with the descriptor that came (-1: none), which is closed after the call.
  void read(int socket,
            const std::function<void(const Visitor&, const local::Attach&, int memory)>& call);
  /// Cuts those who say nothing.
  void tick(Clock::time_point now);

 private:
  Attachments(int listener, std::string path) : listener_(listener), path_(std::move(path)) {}
  struct Waiting {
    Visitor who;
    Clock::time_point until;
  };
  int listener_;
  std::string path_;
  std::map<int, Waiting> waiting_;
};

/// Answers a visitor; `reason` for people, and a descriptor that it is to have.
void answer(int socket, int error, const std::string& reason, const local::Costs& costs = {},
            int descriptor = -1);

/// One packet, and a descriptor that came with it, which is the caller's.
ssize_t receive_packet(int socket, void* bytes, std::size_t most, int& descriptor);

}  // namespace greynic::broker
