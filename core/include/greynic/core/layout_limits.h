#pragma once

/// What a layout for one device may look like: a device says it, the optimizer keeps to it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic {

struct LayoutLimits {
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  std::uint32_t last_table = 0xfffffffe;  ///< no table beyond is added: switches have few
  bool cuts_pay = true;       ///< small tables behind jumps are searched faster than one long one
  bool shared_tables = true;  ///< jumps of several tables may lead to one
  std::set<MatchField> whole_fields;    ///< no further matcher looks at a part of these
  std::size_t most_ranges = 0;          ///< fields of one matcher that may be compared as ranges
  std::size_t most_rules = kNoLimit;    ///< of one table, jumps included
  std::size_t most_recipes = kNoLimit;  ///< that all matchers together may take
  std::size_t most_chained = kNoLimit;  ///< recipes that one matcher may take
  /// Lookup recipes that a matcher of this mask takes; empty: one, whatever the mask.
  std::function<std::size_t(const Mask&)> recipes_of;

  [[nodiscard]] std::size_t recipes(const Mask& mask) const {
    return recipes_of ? recipes_of(mask) : 1;
  }
};

/// Devices of one fleet that take the same layouts.
struct ModelLimits {
  std::vector<std::string> models;  ///< their names
  LayoutLimits limits;
  /// What a packet costs that software forwards for the device, in matchers tried; 0: none does.
  double slow_path = 0.0;
  bool tags = false;  ///< a jump may set metadata that the table behind it matches
};

/// kTooBig names the first limit that the layout exceeds.
[[nodiscard]] Result<void> keeps_to(const Layout& layout, const LayoutLimits& limits);

/// "tables up to 253, 1000 rules a table", "any layout": for people.
[[nodiscard]] std::string to_string(const LayoutLimits& limits);

}  // namespace greynic
