#include "local_proof.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "cover.h"
#include "indexed_rules.h"
#include "regions.h"
#include "rule_index.h"
#include "witnesses.h"

namespace greynic::verify {
namespace {

constexpr std::size_t kMostLeft = 100'000;      // cubes; beyond it all packets are looked at
constexpr std::uint32_t kNoBound = 0xffffffff;  // no rule has this number
constexpr std::size_t kFewOpen = 64;            // parts of a cube
constexpr std::size_t kMostAsked = 256;  // parts of a cube, whether any of it comes to a place
constexpr std::uint64_t kMostToAsk = 100'000'000;  // comparisons that this may take
constexpr std::size_t kFewJumps = 8;  // of one place, that do not pay a list of what they skip

/// Walks the tree of places from the end upwards, with the rules of S present in an index.
class Prover {
 public:
  Prover(const Pool& pool, const Places& places, std::uint64_t most, std::uint64_t& comparisons)
      : pool_(pool),
        places_(places),
        comparisons_(comparisons),
        most_(most),
        regions_(pool, places, comparisons),
        witnesses_(pool, places, regions_, comparisons, most),
        present_(pool, pool.rules),
        count_(pool.rules.size(), 0),
        since_(pool.rules.size(), 0),
        order_(places.size(), 0),
        passed_(present_),
        skipped_(present_),
        passed_count_(pool.rules.size(), 0),
        passes_(places.size(), false) {}

  /// False when too much is left, or the comparisons are used up.
  bool run(const std::function<void(double)>& progress) {
    std::vector<std::vector<PlaceId>> above(places_.size());
    for (PlaceId place = kEnd + 1; place < places_.size(); ++place) {
      if (regions_.reached(place)) above[places_[place].next].push_back(place);
    }
    number(above);
    std::vector<std::vector<PlaceId>> open = {above[kEnd]};
    levels_.resize(1);
    std::vector<PlaceId> way;
    double seen = 0.0;
    if (places_.start() == kEnd) rules_of_no_place();
    while (!open.empty()) {
      if (open.back().empty()) {
        open.pop_back();
        if (!way.empty()) leave(way.back());
        if (!way.empty()) way.pop_back();
        continue;
      }
      const PlaceId place = open.back().back();
      open.back().pop_back();
      way.push_back(place);
      enter(place);
      if (too_much()) return false;
      if (progress) progress(seen++ / static_cast<double>(places_.size()));
      open.push_back(std::move(above[place]));
    }
    return true;
  }

  [[nodiscard]] std::vector<Cube> left() { return std::move(left_); }

 private:
  void number(const std::vector<std::vector<PlaceId>>& above) {
    std::vector<PlaceId> open = {kEnd};
    for (std::uint32_t count = 0; !open.empty(); ++count) {
      const PlaceId place = open.back();
      open.pop_back();
      order_[place] = count;
      open.insert(open.end(), above[place].begin(), above[place].end());
    }
  }

  [[nodiscard]] bool too_much() const {
    return comparisons_ > most_ || left_.size() > kMostLeft || witnesses_.out_of_comparisons();
  }

  void enter(PlaceId place) {
    const std::uint32_t height = places_[place].height;
    levels_.resize(height);
    levels_.emplace_back();
    for (const std::uint32_t rule : witnesses_.of_place(place)) {
      if (count_[rule]++ > 0) continue;
      since_[rule] = height;
      present_.insert(rule);
      levels_[height].add(rule);
    }
    comparisons_ += witnesses_.of_place(place).size();
    entries_do_right(place);
    ways_do_right(place, levels_[height].all());
    if (place == places_.start()) rules_of_no_place();
  }

  void leave(PlaceId place) {
    for (const std::uint32_t rule : witnesses_.of_place(place)) {
      if (--count_[rule] == 0) present_.erase(rule);
    }
  }

  void rules_of_no_place() {
    for (std::uint32_t rule = 0; rule < pool_.rules.size() && !too_much(); ++rule) {
      Cube cube;
      if (count_[rule] > 0 || !regions_.meet(places_.start(), pool_.rules[rule], cube)) continue;
      changes_nothing(places_.start(), cube, rule, {}, [](std::uint32_t) { return true; });
    }
  }

  void entries_do_right(PlaceId place) {
    const auto& steps = places_[place].steps;
    Cube cube;
    RuleNumbers found;
    for (std::size_t i = 0; i < steps.size() && !too_much(); ++i) {
      if (steps[i].jumps || !regions_.meet(place, steps[i].entry, cube)) continue;
      present_.meeting(cube.value.data(), cube.fixed.data(), witnesses_.last_of(place, i) + 1,
                       found, comparisons_);
      get_effect(place, cube, pool_.entries[steps[i].entry].effect, found, {});
    }
  }

  /// The rules that the place adds to the set of its next place are gone there, and those that jump
  /// are in the set of the place where they go on.
  void ways_do_right(PlaceId place, const RuleNumbers& fresh) {
    const Place& here = places_[place];
    std::vector<RuleNumbers> of_step(here.steps.size());
    std::vector<std::uint32_t> met;
    const auto goes_on = [&](std::uint32_t rule) {
      return since_[rule] <= places_[here.next].height;
    };
    Cube cube;
    for (const std::uint32_t rule : fresh) {
      if (!regions_.meet(place, pool_.rules[rule], cube)) continue;
      if (places_.looks_at(place, cube)) {
        const Step* const step = places_.find(place, cube.value.data());
        if (step != nullptr) {
          of_step[static_cast<std::size_t>(step - here.steps.data())].push_back(rule);
        } else {
          changes_nothing(place, cube, rule, {}, goes_on);
        }
        continue;
      }
      regions_.steps().meeting(place, cube, met, comparisons_);
      std::vector<std::uint32_t> taken;
      for (const std::uint32_t step : met) {
        taken.push_back(here.steps[step].entry);
        of_step[step].push_back(rule);
      }
      if (places_.take_all(place, cube, met.size())) continue;
      changes_nothing(place, cube, rule, std::move(taken), goes_on);
      if (too_much()) return;
    }
    jumps_do_right(place, of_step);
  }

  /// Thousands of jumps of a place may lead to the same one: what is tried there is looked through once. So is the
  /// rest that many ways share: they are gone in an order in which neighbours share most.
  void jumps_do_right(PlaceId place, const std::vector<RuleNumbers>& fresh) {
    const Place& here = places_[place];
    std::vector<std::uint32_t> jumps;
    for (std::uint32_t i = 0; i < here.steps.size(); ++i) {
      if (here.steps[i].jumps) jumps.push_back(i);
    }
    const auto to = [&](std::uint32_t step) { return here.steps[step].to; };
    std::stable_sort(jumps.begin(), jumps.end(), [&](std::uint32_t a, std::uint32_t b) {
      return order_[to(a)] < order_[to(b)];
    });
    own_way_ = places_[here.next].height;
    met_ = own_way_;
    listed_ = jumps.size() > kFewJumps;
    Cube cube;
    for (const std::uint32_t jump : jumps) {
      if (too_much()) break;
      if (!regions_.meet(place, here.steps[jump].entry, cube)) continue;
      const PlaceId met = places_.meeting(to(jump), here.next);
      pass_by(to(jump), met);
      if (listed_) list_until(places_[met].height);
      jump_does_right(place, cube, met, fresh[jump]);
    }
    pass_by_until(kEnd);
    list_until(own_way_);
  }

  /// Makes passed_ the rules of the places that packets come by from here until they are on the own way again.
  void pass_by(PlaceId to, PlaceId met) {
    std::vector<PlaceId> more;
    PlaceId at = to;
    for (; at != met && !passes_[at]; at = places_[at].next) more.push_back(at);
    pass_by_until(at == met ? kEnd : at);
    for (auto next = more.rbegin(); next != more.rend(); ++next) {
      passes_[*next] = true;
      way_there_.push_back(*next);
      comparisons_ += witnesses_.of_place(*next).size();
      for (const std::uint32_t rule : witnesses_.of_place(*next)) {
        if (passed_count_[rule]++ > 0) continue;
        passed_.insert(rule);
        if (listed(rule)) skipped_.erase(rule);
      }
    }
  }

  void pass_by_until(PlaceId kept) {
    while (!way_there_.empty() && way_there_.back() != kept) {
      for (const std::uint32_t rule : witnesses_.of_place(way_there_.back())) {
        if (--passed_count_[rule] > 0) continue;
        passed_.erase(rule);
        if (listed(rule)) skipped_.insert(rule);
      }
      passes_[way_there_.back()] = false;
      way_there_.pop_back();
    }
  }

  /// Is the rule one of the own way that jumps skip, but for those of the places that they come by?
  [[nodiscard]] bool listed(std::uint32_t rule) const {
    return listed_ && count_[rule] > 0 && since_[rule] > met_ && since_[rule] <= own_way_;
  }

  /// Makes skipped_ the rules of the own way above this height.
  void list_until(std::uint32_t height) {
    for (; met_ > height; --met_) {
      comparisons_ += levels_[met_].all().size();
      for (const std::uint32_t rule : levels_[met_].all()) {
        if (passed_count_[rule] == 0) skipped_.insert(rule);
      }
    }
    for (; met_ < height; ++met_) {
      for (const std::uint32_t rule : levels_[met_ + 1].all()) {
        if (passed_count_[rule] == 0) skipped_.erase(rule);
      }
    }
  }

  /// `cube`: the packets that jump.
  void jump_does_right(PlaceId place, const Cube& cube, PlaceId met, const RuleNumbers& fresh) {
    const auto goes_on = [&](std::uint32_t rule) {
      return passed_count_[rule] > 0 || since_[rule] <= places_[met].height;
    };
    RuleNumbers asked = fresh;
    // Those behind a rule that has all of the cube where it leads need not be asked.
    if (met != places_[place].next) {
      const std::uint32_t bound = passed_.first_containing(cube, comparisons_);
      if (listed_) {
        RuleNumbers found;
        skipped_.meeting(cube.value.data(), cube.fixed.data(), bound, found, comparisons_);
        asked.insert(asked.end(), found.begin(), found.end());
      }
      for (PlaceId at = places_[place].next; at != met && !listed_; at = places_[at].next) {
        levels_[places_[at].height].meeting(pool_, cube, bound, asked, comparisons_);
      }
    }
    for (const std::uint32_t rule : asked) {
      if (goes_on(rule)) continue;
      Cube both = cube;
      if (!narrow(pool_, pool_.rules[rule], both)) continue;
      changes_nothing(place, both, rule, {}, goes_on);
      if (too_much()) return;
    }
  }

  /// The rules of `set` do to the packets of the cube what they would do with this rule among them,
  /// which contains it. `takers`: entries of the pool whose packets are elsewhere.
  template <typename Set>
  void changes_nothing(PlaceId place, const Cube& cube, std::uint32_t rule,
                       std::vector<std::uint32_t> takers, const Set& set) {
    if (does_not_come(place, cube, takers)) return;
    if (present_.containing(cube, rule, set, comparisons_) != RuleIndex::kNoRule) return;
    RuleNumbers found;
    present_.meeting(cube.value.data(), cube.fixed.data(), rule, found, comparisons_);
    for (const std::uint32_t other : found) {
      if (set(other)) takers.push_back(pool_.rules[other]);
    }
    const std::size_t before = left_.size();
    take_away(place, cube, takers);
    if (left_.size() == before) return;
    left_.resize(before);
    present_.meeting(cube.value.data(), cube.fixed.data(), kNoBound, found, comparisons_);
    RuleNumbers later;
    for (const std::uint32_t other : found) {
      if (other > rule && set(other)) later.push_back(other);
    }
    get_effect(place, cube, pool_.entries[pool_.rules[rule]].effect, later, std::move(takers));
  }

  /// The first of these rules, in order, that takes a packet of the cube has the effect; but for
  /// packets that `settled` takes, or that do not come to the place.
  void get_effect(PlaceId place, const Cube& cube, std::uint32_t effect, const RuleNumbers& rules,
                  std::vector<std::uint32_t> settled) {
    for (const std::uint32_t rule : rules) {
      const std::uint32_t entry = pool_.rules[rule];
      if (pool_.entries[entry].effect == effect) {
        if (contains(pool_, entry, cube)) return;
      } else {
        Cube both = cube;
        narrow(pool_, entry, both);
        take_away(place, both, settled);
        if (too_much()) return;
      }
      settled.push_back(entry);
    }
    take_away(place, cube, settled);
  }

  /// Is it seen at once that none of the cube comes to the place, or that one of the takers has all of it?
  bool does_not_come(PlaceId place, const Cube& cube, const std::vector<std::uint32_t>& takers) {
    const auto& missed = regions_.missed(place);
    comparisons_ += takers.size() + missed.size() + 1;
    const auto takes_all = [&](std::uint32_t taker) { return contains(pool_, taker, cube); };
    return std::ranges::any_of(missed, takes_all) || std::ranges::any_of(takers, takes_all) ||
           regions_.leaves_before(place, cube, comparisons_);
  }

  /// What the takers leave of the cube, and comes to the place, is left.
  void take_away(PlaceId place, const Cube& cube, std::vector<std::uint32_t> takers) {
    if (does_not_come(place, cube, takers)) return;
    const auto& missed = regions_.missed(place);
    std::vector<std::uint32_t> all = takers;
    all.insert(all.end(), missed.begin(), missed.end());
    std::vector<Cube> open;
    const bool few_open = subtract(pool_, cube, all, open, comparisons_, kFewOpen);
    if (few_open && open.empty()) return;
    const std::uint64_t most = comparisons_ + kMostToAsk;
    open.clear();
    for (const Cube& part : coming(place, cube, takers, most)) {
      subtract(pool_, part, all, open, comparisons_);
    }
    for (const Cube& part : open) regions_.come_to(place, part, left_, comparisons_);
  }

  /// What of the cube may come to the place, but for what the takers have. These are taken away one by one, as packets
  /// that seem to come ask for them: of many takers, most have packets that do not.
  std::vector<Cube> coming(PlaceId place, const Cube& cube,
                           const std::vector<std::uint32_t>& takers, std::uint64_t most) {
    std::vector<Cube> open = {cube};
    std::vector<Cube> left;
    std::optional<Cube> some;
    for (std::size_t asked = 0; !open.empty(); ++asked) {
      const Cube part = std::move(open.back());
      open.pop_back();
      const std::uint32_t* taker = nullptr;
      bool none = false;
      for (const auto pieces : {Pieces::kOne, Pieces::kAll}) {
        if (none || taker != nullptr || asked >= kMostAsked) break;
        none = regions_.none_comes(place, part, pieces, most, some, comparisons_);
        if (some) taker = widest(takers, *some);
      }
      if (taker != nullptr) {
        subtract(pool_, part, {*taker}, open, comparisons_);
      } else if (!none) {
        left.push_back(part);
      }
    }
    return left;
  }

  /// The taker that has most of the cube; null where none has any.
  const std::uint32_t* widest(const std::vector<std::uint32_t>& takers, const Cube& cube) {
    const std::uint32_t* best = nullptr;
    int least = std::numeric_limits<int>::max();
    comparisons_ += takers.size();
    for (const std::uint32_t& taker : takers) {
      if (!meets(pool_, taker, cube)) continue;
      int more = 0;
      for (std::size_t w = 0; w < pool_.words; ++w) {
        more += std::popcount(pool_.fixed(taker)[w] & ~cube.fixed[w]);
      }
      if (more < least) best = &taker;
      least = std::min(least, more);
    }
    return best;
  }

  const Pool& pool_;
  const Places& places_;
  std::uint64_t& comparisons_;
  std::uint64_t most_;
  Regions regions_;
  Witnesses witnesses_;
  RuleIndex present_;                 ///< the rules of S
  std::vector<std::uint32_t> count_;  ///< by rule: places from here to the end that add it to S
  std::vector<std::uint32_t> since_;  ///< by rule: height of the lowest of these
  std::vector<std::uint32_t>
      order_;                       ///< by place: from the end upwards, one branch after the other
  std::vector<PlaceId> way_there_;  ///< of a jump, until it meets the own way, from there upwards
  RuleIndex passed_;                ///< the rules of its places
  RuleIndex skipped_;  ///< rules of the own way that it skips, where that is asked for many jumps
  std::vector<std::uint32_t> passed_count_;  ///< by rule: how many of them add it
  std::vector<bool> passes_;                 ///< by place: is it one of them?
  bool listed_ = false;                      ///< is that so?
  std::uint32_t own_way_ = 0;                ///< the height where the own way goes on
  std::uint32_t met_ = 0;  ///< the rules of its places above this height are skipped
  /// By height, of the way from the end to here: rules that the place is the lowest to add to S.
  std::vector<IndexedRules> levels_;
  std::vector<Cube> left_;
};

}  // namespace

LeftToShow prove_locally(const Pool& pool, const Places& places, std::uint64_t most,
                         std::uint64_t& comparisons, const std::function<void(double)>& progress) {
  Prover prover(pool, places, most, comparisons);
  const bool all = prover.run(progress);
  return {prover.left(), all};
}

}  // namespace greynic::verify
