#pragma once

/// Masks that are worth a try as fronts of a table: what keeps packets apart from all that stands before their rules.

#include <cstdint>
#include <vector>

#include "src/fronts/front_table.h"

namespace greynic::optimizer {

/// `at`: the packets that no front decides so far, by place in the table's.
[[nodiscard]] std::vector<std::vector<Word>> masks_to_try(const FrontTable& table,
                                                          const std::vector<std::uint32_t>& at);

/// What either looks at.
[[nodiscard]] std::vector<Word> either(std::vector<Word> a, const std::vector<Word>& b);

}  // namespace greynic::optimizer
