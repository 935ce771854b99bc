#pragma once

/// A layout in the making: tables of matchers, each table with the one that a miss goes on to.

#include <memory>
#include <vector>

#include "src/chained/units.h"

namespace greynic::optimizer::chained {

inline constexpr std::uint32_t kNowhere = 0xffffffff;

using ranged::Spans;

/// Does what a unit does, or goes on in another table of the plan.
struct PlanEntry {
  std::uint32_t unit = kNowhere;
  std::uint32_t table = kNowhere;
  double weight = 0.0;  ///< share of the packets that hit it
  Spans spans{};        ///< of the fields that the matcher compares as ranges
};

struct PlanMatcher {
  PlanMatcher(const Word* bits, std::size_t words) : mask(bits, bits + words), values(words) {}
  std::vector<Word> mask;
  std::array<bool, kPortFields> as_range{};  ///< of these fields no bits are in the mask
  Rows values;
  std::vector<PlanEntry> entries;  ///< one for each of values
};

struct PlanTable {
  std::vector<PlanMatcher> matchers;
  std::uint32_t exit = kNowhere;  ///< where a miss goes on; kNowhere: it stays a miss
  double missing = 0.0;           ///< share of the packets that go there
};

/// Tables by number; the first is the input table. Copies share tables until one is changed: the search tries
/// many plans that differ in a few.
class Plan {
 public:
  Plan() = default;
  explicit Plan(std::size_t size) {
    while (tables_.size() < size) add();
  }
  [[nodiscard]] std::size_t size() const { return tables_.size(); }
  [[nodiscard]] bool empty() const { return tables_.empty(); }
  [[nodiscard]] const PlanTable& operator[](std::size_t table) const { return *tables_[table]; }
  void add() { tables_.push_back(std::make_shared<PlanTable>()); }
  [[nodiscard]] PlanTable& edit(std::size_t table) {
    auto& place = tables_[table];
    if (place.use_count() != 1) place = std::make_shared<PlanTable>(*place);
    return *place;
  }
  void clear(std::size_t table) { tables_[table] = std::make_shared<PlanTable>(); }

 private:
  std::vector<std::shared_ptr<PlanTable>> tables_;
};

/// Share of the packets that hit it.
[[nodiscard]] double weight_of(const PlanMatcher& matcher);

/// Rules that the table makes, a jump for its exit included.
[[nodiscard]] std::size_t entries_in(const PlanTable& table);

/// Rules that the plan makes, a jump for each exit included.
[[nodiscard]] std::size_t entries_of(const Plan& plan);

/// Matchers tried from one of a table's on, by the weights of its entries.
[[nodiscard]] double tried_from(const PlanTable& table, std::size_t begin);

/// The mean of matchers tried.
[[nodiscard]] double tried_in(const Plan& plan);

/// The most jumps that can follow one another.
[[nodiscard]] std::size_t longest_way(const Plan& plan);

}  // namespace greynic::optimizer::chained
