#pragma once

/// The door of a daemon: takes TCP connections, keeps them within limits, and hands them on.
///
/// A connection is silent until its first byte, then a stranger until it has proven who it is, then
/// a guest. Silent ones cost a descriptor each and reach nobody; with its first byte a connection
/// is handed to whoever speaks the protocol, who calls proven() when its caller is known. The door
/// keeps watch: it cuts who does not prove itself in time, and when too many wait it cuts, of the
/// address that has most of them, the oldest silent one, or else the oldest stranger. So idle or
/// slow connections never keep a quick one out, however many come. Guests over the limit are turned
/// away.
///
/// Not promised: an attacker who may open connections from one address faster than a caller at the
/// same address can prove itself (some 10 ms) will delay that caller.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::daemon {

struct DoorLimits {
  std::size_t waiting = 256;        ///< silent ones and strangers
  std::size_t waiting_of_one = 64;  ///< of one address
  std::size_t guests = 256;
  std::size_t guests_of_one = 64;
  /// From the accept to the proof. A handshake over a slow line takes a second.
  std::chrono::milliseconds prove_within{10000};
  /// What a connection may send from one proof to the next, and all of them together. Libraries keep
  /// what belongs to no whole message yet, and some without a bound. Where either is set, connections
  /// pass through the door, and no more than that reaches who took them.
  std::uint64_t bytes_a_proof = UINT64_MAX;
  std::uint64_t bytes_a_proof_of_all = UINT64_MAX;
  /// A caller that says no more may still wait for its answer, as one of HTTP may. Else who says no
  /// more has gone.
  bool half_closed_stay = false;
};

class Door {
 public:
  /// Takes a connected socket over (non-blocking, close-on-exec; of TCP, or one that the door stands
  /// behind). Called by the door's thread.
  using Hand = std::function<void(int socket)>;
  /// Whom it turned away and why, in lines that are safe to log; may be empty.
  using Tell = std::function<void(std::string_view)>;

  struct Counts {
    std::size_t silent = 0;
    std::size_t strangers = 0;
    std::size_t guests = 0;
    std::uint64_t accepted = 0;
    std::uint64_t cut = 0;  ///< by limits and deadlines
  };

  /// Listens at "ADDRESS:PORT" ("[::1]:18600"), at each address of a name. Errors: kBadInput when
  /// it is no such text, kIo when the port is taken or this host has no such address.
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(const std::string& listen,
                                                          const DoorLimits& limits, Hand hand,
                                                          Tell tell = {});
  ~Door();  ///< close()
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Where it listens; with port 0 asked for, the one that was given.
  [[nodiscard]] const std::string& address() const;

  /// Stops listening and cuts all connections.
  void close();

  // A connection is named by its far end, "10.0.0.7:41234" or "[fe80::7]:41234". Thread-safe.

  /// Its caller is known from now on, and has said a whole message. False when there are too many
  /// guests: it was cut.
  bool proven(const std::string& peer);
  [[nodiscard]] bool is_open(const std::string& peer) const;
  void cut(const std::string& peer);
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  explicit Door(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// "HOST:PORT" with a port that is a number.
[[nodiscard]] bool is_listen_address(std::string_view listen);
/// Whether only this host can reach "HOST:PORT": by number, not by how it begins, as
/// "127.lab.example" may be anywhere.
[[nodiscard]] bool is_loopback(std::string_view listen);
/// The far end of a connection under the name that the door has for it.
[[nodiscard]] std::string peer_of(int socket);

}  // namespace greynic::daemon
