#pragma once

/// One way to spend entries on a finished plan.

#include <cstdint>

#include "src/chained/plan.h"

namespace greynic::optimizer::spend {

struct Offer {
  double worth = 0.0;  ///< matchers spared on the mean, for an entry
  double price = 0.0;  ///< entries that it takes, at most
  std::uint32_t table = chained::kNowhere;
  bool operator<(const Offer& other) const {
    return worth != other.worth ? worth < other.worth : table > other.table;
  }
};

/// What takes no entry more is priced as half a one.
[[nodiscard]] inline Offer offer_of(double spared, double price, std::uint32_t table) {
  return {spared / (price > 0.5 ? price : 0.5), price, table};
}

struct Taken {
  double entries = 0.0;  ///< more than before
  std::uint32_t table = chained::kNowhere;
  std::uint32_t other = chained::kNowhere;  ///< another table that has changed
};

using Entrances = std::vector<std::uint32_t>;  ///< by table: jumps that lead there, exits included

}  // namespace greynic::optimizer::spend
