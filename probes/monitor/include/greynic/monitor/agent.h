#pragma once

/// `greynic zero agent`: takes the arenas of the programs of a host and shows them to collectors.
///
/// Programs hand their arenas over as memfds through a unix socket; the kernel says who they are
/// (SO_PEERCRED). The agent keeps a directory of them, itself a memfd that collectors only read. By
/// the end of a program's socket the agent knows that it has ended: its arenas stay readable for a
/// while, so that no last value is lost. Nobody asks a program for anything, and the agent copies
/// no value.
///
/// Who may see what: a collector of root or of the agent's own user sees all; others see the arenas
/// of their own user. Arenas of class `system` are taken from root and the agent's own user only.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::monitor {

struct AgentOptions {
  std::string socket = "/run/greynic/zero.sock";
  std::uint64_t bytes_of_user = 256 << 20;  ///< of all arenas that a user has here
  std::uint32_t arenas_of_user = 256;
  std::uint32_t connections_of_user = 256;
  std::chrono::milliseconds linger{10000};  ///< an ended program's arenas stay for so long
  std::chrono::milliseconds beat{700};      ///< of the heartbeat
  /// Lines for a log, safe to print. Empty: nothing is told.
  std::function<void(std::string_view)> tell;
};

class Agent {
 public:
  /// kIo when the socket cannot be made or another agent serves there.
  [[nodiscard]] static Result<std::unique_ptr<Agent>> start(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Serves until `stop` is set, in this thread.
  void serve(const std::atomic<bool>& stop);

  struct Counts {
    std::size_t arenas = 0, programs = 0, collectors = 0;
    std::uint64_t refused = 0;
  };
  [[nodiscard]] Counts counts() const;
  /// Its directory, for as long as it lives.
  [[nodiscard]] std::span<const std::byte> directory() const;

 private:
  struct State;
  explicit Agent(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace greynic::monitor
