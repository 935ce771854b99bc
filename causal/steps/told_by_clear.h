#pragma once

/// Which rows of a covering plan need no test, because clear configurations had all that they are for: each
/// choice of as many of their levels as the plan's strength says.
///
/// A search for causes tests many configurations, and half of them are clear. Each stands for what a row of
/// the plan would have told: a cause of so many levels is in no clear configuration.

#include "src/session.h"

namespace greynic::causal {

class ToldByClear {
 public:
  explicit ToldByClear(const Campaign& campaign) : campaign_(campaign) {}
  /// Every choice of levels of this row was in a configuration that tests call clear. Never so for plans of
  /// other kinds, and for rows that the campaign asks for by name.
  [[nodiscard]] bool tells(const Session& session, const Configuration& row) const;

 private:
  const Campaign& campaign_;
};

}  // namespace greynic::causal
