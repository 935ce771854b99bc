#pragma once

/// Who is at a door: the book of its connections and the rules who has to go. It owns the sockets
/// of silent connections and of those behind a relay, and a duplicate of each other that was handed on,
/// by which it can cut it and hears of its end.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/daemon/door.h"
#include "relay.h"

namespace greynic::daemon {

class Visitors {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { kSilent, kStranger, kGuest };
  struct Visitor {
    int socket = -1;
    std::string peer;     ///< address and port
    std::string address;  ///< without the port
    Stage stage = Stage::kSilent;
    Clock::time_point since;
    std::unique_ptr<Relay> relay;  ///< of one that was handed on where limits count bytes
    std::uint64_t unproven = 0;    ///< bytes since its last proof
  };

  explicit Visitors(const DoorLimits& limits) : limits_(limits) {}
  ~Visitors() { cut_all(); }
  Visitors(const Visitors&) = delete;
  Visitors& operator=(const Visitors&) = delete;

  /// Makes room for one more of this address by cutting others.
  void make_room(const std::string& address);
  /// Cuts one that waits, the silent first; false when none waits.
  bool cut_one();
  std::uint64_t add(Visitor visitor);
  [[nodiscard]] Visitor* find(std::uint64_t number);
  [[nodiscard]] const Visitor* find(const std::string& peer) const;
  /// A silent one becomes a stranger: gives its socket away and keeps the duplicate.
  int hand_on(std::uint64_t number, int duplicate);
  /// The same where bytes are counted: it stays behind this relay.
  void hand_on(std::uint64_t number, std::unique_ptr<Relay> relay);
  [[nodiscard]] bool counts_bytes() const;
  /// Something has come at an end of one that was handed on behind a relay: it is carried, if it may
  /// be. Who ends by that or says too much is gone afterwards; where all together say too much, who
  /// said most.
  void carry(std::uint64_t number, Relay::End end, std::uint32_t events);
  /// False when there are too many guests: it was cut.
  bool make_guest(const std::string& peer);
  /// It has ended by itself.
  void forget(std::uint64_t number);
  void cut(const std::string& peer);
  void cut_all();
  /// Those that did not prove themselves in time.
  void cut_late(Clock::time_point now);
  [[nodiscard]] const Door::Counts& counts() const { return counts_; }
  /// "10.0.0.7 (31)": who was cut most since the last call, and how often; empty: nobody.
  [[nodiscard]] std::string most_cut();

 private:
  using Book = std::map<std::uint64_t, Visitor>;
  std::size_t& count_of(Stage stage);
  Visitor& make_stranger(std::uint64_t number);
  /// The oldest that waits: of `address`, or of the address with most that wait when it is empty.
  Book::iterator oldest_waiting(std::string address);
  void remove(Book::iterator visitor, bool by_us);
  [[nodiscard]] std::size_t waiting() const { return counts_.silent + counts_.strangers; }

  DoorLimits limits_;
  Book book_;  ///< by number, and so by age
  std::map<std::string, std::uint64_t> by_peer_;
  std::map<std::string, std::size_t> waiting_of_;
  std::map<std::string, std::size_t> guests_of_;
  std::map<std::string, std::size_t> cut_of_;
  std::uint64_t unproven_ = 0;  ///< of all together
  std::uint64_t last_number_ = 0;
  Door::Counts counts_;
};

}  // namespace greynic::daemon
