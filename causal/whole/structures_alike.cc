#include <algorithm>

#include "structures.h"

/// Answers that call much the same configurations walls as the likeliest one, with other causes. Chains
/// walk by single terms and seldom get there: all that lies between is unlikely.
///
///     told                    held against it
///     a b c d                 a b | c d        and each other way to part it
///     a b | b c               b                what both have
///     a b | b c | a c         b | c | a        what each two have
///
/// A wall by one cause of two is shallower than a wall by both. Where noise is large and the baseline
/// seems slower than it is, that one passes for clear, and only walls by both are left. So do walls that
/// lack a setting which is no term: what was learned from such an answer speaks for it.

namespace greynic::causal {
namespace {

constexpr std::size_t kLeastParted = 2;  // terms
constexpr std::size_t kMostParted = 7;

Conjunction terms_of_both(const Conjunction& a, const Conjunction& b) {
  Conjunction both;
  std::copy_if(a.begin(), a.end(), std::back_inserter(both),
               [&](const Term& term) { return has_setting(b, term.setting); });
  return both;
}

/// Without causes that hold all settings of another one.
std::vector<Conjunction> least_of(const std::vector<Conjunction>& causes) {
  std::vector<Conjunction> least;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    bool needed = true;
    for (std::size_t j = 0; j < causes.size() && needed; ++j) {
      const std::size_t both = terms_of_both(causes[j], causes[i]).size();
      const bool within = i != j && both == causes[j].size();
      needed = !within || (causes[i].size() == both && i < j);
    }
    if (needed) least.push_back(causes[i]);
  }
  return least;
}

}  // namespace

std::vector<std::vector<Conjunction>> Structures::alike(const std::vector<Conjunction>& causes) {
  std::vector<std::vector<Conjunction>> all;
  const auto add = [&](std::vector<Conjunction> other) {
    const bool empty = std::ranges::any_of(other, &Conjunction::empty);
    if (!empty) all.push_back(least_of(other));
  };
  std::vector<Conjunction> of_each_two;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    for (std::size_t j = i + 1; j < causes.size(); ++j) {
      of_each_two.push_back(terms_of_both(causes[i], causes[j]));
      std::vector<Conjunction> one = causes;
      one.push_back(of_each_two.back());
      add(std::move(one));
    }
  }
  if (causes.size() > 2) add(of_each_two);
  for (std::size_t c = 0; c < causes.size(); ++c) {
    const std::size_t terms = causes[c].size();
    if (terms < kLeastParted) continue;
    for (std::size_t t = 0; t < terms; ++t) {
      std::vector<Conjunction> less = causes;
      less[c].erase(less[c].begin() + static_cast<std::ptrdiff_t>(t));
      add(std::move(less));
    }
    if (terms > kMostParted) continue;
    for (std::size_t part = 1; part < (std::size_t{1} << (terms - 1)); ++part) {
      std::vector<Conjunction> parted = causes;
      parted[c].clear();
      parted.emplace_back();
      for (std::size_t t = 0; t < terms; ++t) {
        ((part >> t & 1) != 0 ? parted[c] : parted.back()).push_back(causes[c][t]);
      }
      add(std::move(parted));
    }
  }
  return all;
}

void Structures::judge_alike(const std::function<double(const std::vector<TestSet>&)>& by_own) {
  if (likely_.empty()) return;
  const double best = likely_.front().score;
  std::vector<Structure> more;
  for (const auto& causes : alike(likely_.front().causes)) {
    const double before = odds_before(causes);
    if (before < -1e200) continue;
    Structure one{.causes = causes, .before = before, .walls = walls_of(causes, kNoTerm)};
    one.score = before + by_own(walls_of_each(one.causes));
    if (one.score < best - kFarBehind) continue;
    more.push_back(std::move(one));
  }
  for (Structure& one : more) {
    keep_always(one);
    const auto known = std::ranges::find_if(likely_, [&](const Structure& other) {
      return std::ranges::is_permutation(other.causes, one.causes);
    });
    if (known == likely_.end()) {
      likely_.push_back(std::move(one));
    } else {
      known->score = std::max(known->score, one.score);
    }
  }
  if (!more.empty()) share_out();
}

}  // namespace greynic::causal
