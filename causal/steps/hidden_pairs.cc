#include "hidden_pairs.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "greynic/statistics/random.h"

namespace greynic::causal {
namespace {

constexpr std::size_t kMostQuestions = 8;  // at once: codes of more bits are too many to try
constexpr int kSweeps = 6;
constexpr std::uint64_t kSeed = 0x68696464656e;  // any fixed number

using Code = std::uint32_t;

}  // namespace

HiddenPairs::HiddenPairs(std::size_t settings, const std::vector<FoundCause>& causes)
    : settings_(settings), causes_(causes), open_(settings) {
  for (std::size_t i = 0; i < settings; ++i) {
    if (holds_cause(Set().set(i))) continue;
    for (std::size_t j = 0; j < settings; ++j) open_[i].set(j, j != i);
    all_ += static_cast<double>(settings) - 1.0;
  }
}

bool HiddenPairs::holds_cause(const Set& kept) const {
  return std::any_of(causes_.begin(), causes_.end(), [&](const FoundCause& cause) {
    return holds(kept, cause.terms) && (kept & cause.absent).none();
  });
}

void HiddenPairs::saw_clear(const Set& kept, const Set& healed) {
  for (std::size_t i = 0; i < settings_; ++i) {
    if (kept.test(i)) open_[i] &= ~healed;
  }
}

double HiddenPairs::left() const {
  double count = 0.0;
  for (const Set& one : open_) count += static_cast<double>(one.count());
  return all_ > 0.0 ? count / all_ : 0.0;
}

/// Each setting in turn takes the code that leaves fewest of its pairs, beside those of the others.
std::vector<Set> HiddenPairs::codes(std::size_t tests) const {
  statistics::Random random(kSeed);
  const Code last = (Code{1} << tests) - 1;
  std::vector<Code> code(settings_, 0);
  std::vector<std::size_t> order(settings_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Code> tried;
  for (Code one = 1; one <= last; ++one) tried.push_back(one);
  const auto shuffle = [&](auto& all) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[random.below(static_cast<std::uint32_t>(i))]);
  };
  std::vector<Set> heals(settings_);  // of each setting: those that it may heal
  for (std::size_t i = 0; i < settings_; ++i) {
    for (std::size_t j = 0; j < settings_; ++j) heals[j].set(i, open_[i].test(j));
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    shuffle(order);
    for (const std::size_t i : order) {
      std::vector<int> healed_by(last + 1, 0), healing(last + 1, 0);
      for (std::size_t j = 0; j < settings_; ++j) {
        if (open_[i].test(j)) ++healed_by[code[j]];
        if (heals[i].test(j)) ++healing[code[j]];
      }
      // Sums over all codes that have all bits of one, and over all that have no others.
      for (std::size_t bit = 0; bit < tests; ++bit) {
        for (Code one = 0; one <= last; ++one) {
          const Code other = one ^ (Code{1} << bit);
          if (one < other) healed_by[one] += healed_by[other];
          if (one > other) healing[one] += healing[other];
        }
      }
      Code barred = 0;  // tests that would hold a cause
      for (const FoundCause& cause : causes_) {
        if (!cause.terms.test(i)) continue;
        Code rest = last;
        for (std::size_t j = 0; j < settings_; ++j) {
          if (j != i && cause.terms.test(j)) rest &= code[j];
        }
        barred |= rest;
      }
      Code best = 0;
      int least = healed_by[0] + healing[0];
      shuffle(tried);
      for (const Code one : tried) {
        if ((one & barred) != 0 || healed_by[one] + healing[one] >= least) continue;
        least = healed_by[one] + healing[one];
        best = one;
      }
      code[i] = best;
    }
  }
  std::vector<Set> sets(tests);
  for (std::size_t i = 0; i < settings_; ++i) {
    for (std::size_t bit = 0; bit < tests; ++bit) sets[bit].set(i, (code[i] >> bit & 1) != 0);
  }
  std::erase_if(sets, [](const Set& one) { return one.none(); });
  return sets;
}

std::vector<Set> HiddenPairs::questions(double most_left) const {
  std::vector<Set> sets;
  if (left() <= most_left) return sets;
  for (std::size_t tests = 1; tests <= kMostQuestions; ++tests) {
    sets = codes(tests);
    HiddenPairs after = *this;
    for (const Set& set : sets) after.saw_clear(set, ~set);
    if (after.left() <= most_left) break;
  }
  return sets;
}

HiddenPairs pairs_seen(Settings& settings, const std::vector<FoundCause>& causes) {
  HiddenPairs pairs(settings.size(), causes);
  for (const Settings::Sides& clear : settings.clear(kSurelyClear)) {
    pairs.saw_clear(clear.as_wall, clear.as_baseline);
  }
  return pairs;
}

}  // namespace greynic::causal
