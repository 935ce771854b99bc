#pragma once

/// Who is at a door: the book of its connections and the rules who has to go. It owns the sockets
/// of silent connections and a duplicate of each that was handed on, by which it can cut it and
/// hears of its end.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/daemon/door.h"

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
    std::uint64_t bytes_proven = 0;  ///< sent until its last proof
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
  /// False when there are too many guests: it was cut.
  bool make_guest(const std::string& peer);
  /// It has ended by itself.
  void forget(std::uint64_t number);
  void cut(const std::string& peer);
  void cut_all();
  /// Those that did not prove themselves in time.
  void cut_late(Clock::time_point now);
  /// Those that sent more than they may since their last proof; of all together, who sent most.
  void cut_talkers();
  [[nodiscard]] const Door::Counts& counts() const { return counts_; }
  /// "10.0.0.7 (31)": who was cut most since the last call, and how often; empty: nobody.
  [[nodiscard]] std::string most_cut();

 private:
  using Book = std::map<std::uint64_t, Visitor>;
  std::size_t& count_of(Stage stage);
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
  std::uint64_t last_number_ = 0;
  Door::Counts counts_;
};

}  // namespace greynic::daemon
