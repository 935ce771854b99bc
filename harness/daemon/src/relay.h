#pragma once

/// A connection that passes through the door: what its far end sends is counted before it goes on to
/// whoever took the inner end, and what that says goes back. So no more reaches a library than it was
/// granted, however long nobody looks: a door that stands still lets nothing through.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace greynic::daemon {

class Relay {
 public:
  enum class End : std::uint8_t { kOuter, kInner };
  enum class Went : std::uint8_t {
    kOn,
    kEnded,
    kTooMuch
  };  ///< the last: more is there than granted
  /// An epoll and what it says of either end.
  struct Watch {
    int poll = -1;
    std::uint64_t outer = 0;
    std::uint64_t inner = 0;
  };

  /// `outer` stays the caller's and is not in the epoll yet. `given` is for whoever serves it, who sees
  /// `peer` at its far end, by peer_of(). Null when no descriptors are left.
  [[nodiscard]] static std::unique_ptr<Relay> open(int outer, const std::string& peer,
                                                   const Watch& watch, int& given);
  ~Relay();  ///< whoever serves it sees the end
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Carries some of what there is at one end, which the epoll told of by `events`; inwards at most
  /// `granted` bytes. Adds to `carried` what was taken in.
  Went carry(End end, std::uint32_t events, std::uint64_t granted, std::uint64_t& carried);

 private:
  struct Side {
    int socket = -1;
    std::uint64_t key = 0;
    std::uint32_t waits_for = 0;  ///< 0: it is not in the epoll
    std::string unsaid;           ///< what it does not take yet
  };
  Relay(int outer, int inner, const Watch& watch);
  static bool say(Side& side);
  static std::optional<std::size_t> hear(const Side& from, Side& to, std::uint64_t most);
  void wait(Side& side, std::uint32_t events) const;
  void wait_for_both();

  int poll_;
  Side outer_;
  Side inner_;
};

}  // namespace greynic::daemon
