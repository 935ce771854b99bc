#pragma once

/// The threads of all hosts: they post what their queues have room for, ring doorbells, pass the
/// locks around what they share, and go on when completions give slots back.
///
/// Needs: the world; what is due in an open loop (arrivals.h); which QPs have failed (recovery.h).
/// Gives: kThreadStep, kDoorbell and kWqeArrives events.

#include <cstdint>
#include <vector>

#include "parts/arrivals.h"
#include "parts/host.h"
#include "parts/recovery.h"
#include "parts/world.h"

namespace greynic::twin {

class Threads {
 public:
  Threads(World& world, Arrivals& arrivals, const Recovery& recovery)
      : world_(world), arrivals_(arrivals), recovery_(recovery) {}
  void lay_out();

  /// Event kThreadStep.
  void step(std::uint32_t thread, Time t);
  /// So many WQEs of a stream are posted, and its RNIC is told.
  void post(std::uint32_t stream, std::uint32_t count, Time t);
  /// A completion gives so many slots of the stream's queue back.
  void credit(std::uint32_t stream, std::uint32_t count, Time t);

  /// Slots that threads know to be in use.
  [[nodiscard]] std::uint64_t held_count() const;
  /// Threads share QPs, and each request has an owner.
  [[nodiscard]] bool shared() const { return !owners_.empty(); }
  [[nodiscard]] std::size_t owner_count(std::uint32_t stream) const {
    return owners_[stream].size();
  }
  /// Spread of a thread's work, as a share of it.
  static constexpr double kJitter = 0.06;

 private:
  void lay_out_host(std::uint32_t side);
  void give_streams(std::uint32_t side, std::uint32_t base);
  void free_slot_in(std::uint32_t stream);
  [[nodiscard]] Time pass_locks(std::uint32_t thread, std::uint32_t stream, std::uint32_t count,
                                Time t);
  void wake(std::uint32_t thread, std::uint32_t returned, Time t);

  World& world_;
  Arrivals& arrivals_;
  const Recovery& recovery_;
  std::vector<Host> hosts_;
  std::vector<Thread> threads_;
  std::vector<Fifo<std::uint32_t>> owners_;  ///< of requests on QPs that threads share, by stream
};

}  // namespace greynic::twin
