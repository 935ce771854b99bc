#pragma once

/// The best plan that fits, of many: at several prices of an entry, and with several first steps.
///
/// The dearer an entry, the fewer a plan has, so prices rise until one fits; what it leaves is spent
/// (src/spend). What a cut costs is an estimate, and knows nothing of what is spent: so nodes that many packets come to
/// are decided otherwise, one after the other, as long as the finished plan gets better. First the whole table, at
/// several prices.

#include <functional>
#include <memory>

#include "src/chained/grower.h"
#include "src/spend/uniting.h"

namespace greynic::optimizer::chained {

/// What the search works with; all must outlive it.
struct Growing {
  Units& units;
  const Conflicts& conflicts;
  const Rows& packets;
  const std::vector<double>& packet_weight;
  const std::vector<std::uint32_t>& decider;  ///< units by packet
};

struct PlanLimits {
  std::size_t most_rules = 0;                     ///< jumps included
  std::size_t most_tables = 0;                    ///< that may be added
  double least_price = 0.0;                       ///< of an entry: at lower ones no plan fits
  int prices = 8;                                 ///< that are tried until one fits
  bool chains_as_made = false;                    ///< chains are priced with what waits in them
  spend::Uniting uniting = spend::Uniting::kAny;  ///< by entries that are left
  bool filters = true;                            ///< may be put in
  std::function<bool(const Plan&)> keeps_to{};    ///< other limits; empty: none
};

/// Plans of a search, until it goes on.
struct FoundPlans {
  const Plan& best;    ///< one chain, where nothing else fits
  const Plan& other;   ///< with filters where the best has none, or without; may be empty
  double price = 0.0;  ///< of an entry, the first at which either fitted
};

class PlanSearch {
 public:
  PlanSearch(const Growing& growing, PlanLimits limits);

  /// A plan with filters and one without, each at the first price at which it fits.
  void begin();
  /// Other first steps than that of the better one, and other prices.
  void improve();
  /// Other steps behind it, where many packets try many matchers; then its chains with all care.
  void refine();
  /// The best so far.
  [[nodiscard]] FoundPlans found();
  /// The best of masks, improved, with what is left spent on matchers that compare ports as ranges.
  /// Empty where none may.
  [[nodiscard]] Plan best_with_ranges() const;

 private:
  struct Kept {
    Plan plan;  ///< empty: none fits yet
    GrownPlan
        unspent;  ///< its plan is empty where no chain was made quickly, and no port may be a range
    double price = 0.0;
    double tried = 0.0;
    Plan bare{};  ///< once improved: unspent, where ports may be ranges
  };

  [[nodiscard]] Grown grow(const GrowOptions& options);
  [[nodiscard]] GrowOptions options_at(double price) const;
  bool fits(GrownPlan grown, double price, Kept& kept);
  void begin_otherwise(Kept& best);
  void decide_otherwise(Kept& best);
  bool decide(std::uint32_t& number, const Step* step, double price, double slack, Kept& best);
  void make_chains_with_care(Kept& kept);
  [[nodiscard]] bool with_filters() const;
  [[nodiscard]] bool may_range() const;

  Growing growing_;
  PlanLimits limits_;
  double least_price_;
  double price_ = 0.0;
  double first_price_ = 0.0;
  Kept filtered_;
  Kept without_;
  std::unique_ptr<Grower>
      grower_;            ///< of the better one as grown; null: it is not decided otherwise
  GrownPlan chain_;       ///< where nothing fits
  std::size_t work_ = 0;  ///< of all plans grown
};

}  // namespace greynic::optimizer::chained
