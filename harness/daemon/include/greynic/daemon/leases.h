#pragma once

/// What a daemon holds for its callers: for each a lease that ends by itself, an id that cannot be
/// guessed, and an owner without whom the id is worth nothing. How many there are, in all and for
/// one owner, is bounded. Not thread-safe; time is handed in.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::daemon {

/// 64 bits of the kernel's random generator, never 0.
[[nodiscard]] std::uint64_t unguessable_id();

class Leases {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::size_t most = 1;
    std::size_t most_of_one = 1;
    std::chrono::seconds longest{3600};
  };
  struct Lease {
    std::string owner;
    std::chrono::seconds length{};
    Clock::time_point end;
  };

  explicit Leases(Limits limits) : limits_(limits) {}

  /// A new lease. kTooBig when it is longer than allowed or the owner has too many; empty when all
  /// are given out: the caller is to ask again.
  [[nodiscard]] Result<std::optional<std::uint64_t>> grant(const std::string& owner,
                                                           std::chrono::seconds length,
                                                           Clock::time_point now);
  /// The lease, which begins anew; null when there is none of this id for this owner.
  [[nodiscard]] const Lease* renew(std::uint64_t id, const std::string& owner,
                                   Clock::time_point now);
  /// Ends a lease soon, whatever was granted.
  void shorten(std::uint64_t id, Clock::time_point end);
  void end(std::uint64_t id) { leases_.erase(id); }
  /// The ids whose time is over. They stay until end().
  [[nodiscard]] std::vector<std::uint64_t> expired(Clock::time_point now) const;
  [[nodiscard]] const Lease* find(std::uint64_t id) const;
  [[nodiscard]] std::size_t size() const { return leases_.size(); }

 private:
  Limits limits_;
  std::map<std::uint64_t, Lease> leases_;
};

}  // namespace greynic::daemon
