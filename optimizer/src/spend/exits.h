#pragma once

/// Copies of the matchers of exits in the tables that lead there: each copy spares the packets that
/// miss one lookup.

#include <optional>
#include <queue>

#include "src/spend/offer.h"

namespace greynic::optimizer::spend {

class Exits {
 public:
  /// Both must outlive it.
  Exits(chained::Plan& plan, Entrances& entrances);

  /// What is worth most, of all that takes no more than `room` entries.
  [[nodiscard]] std::optional<Offer> best(double room);
  /// Does what was offered last.
  Taken take();

 private:
  [[nodiscard]] double price_of(const chained::PlanTable& table) const;
  void offer(std::uint32_t number);
  void take_in(chained::PlanTable& table);

  chained::Plan& plan_;
  Entrances& entrances_;
  std::priority_queue<Offer> offers_;
};

}  // namespace greynic::optimizer::spend
