#include "structures.h"

#include <algorithm>
#include <cmath>

namespace greynic::causal {
namespace {

constexpr std::uint64_t kWalkSeed = 0x77616c6b;  // any fixed number
constexpr std::array<double, kMostOfWall + 1> kCausesBefore = {0.0,  0.80, 0.14, 0.04,
                                                               0.01, 5e-3, 2e-3};
constexpr double kOpenEnd = 0.6;
constexpr double kAmong = 0.3;
constexpr double kEmergent = 0.05;  // odds of a cause to need that a term of another is absent
constexpr std::size_t kChains = 24;

/// All settings of the one are settings of the other.
bool within(const Conjunction& one, const Conjunction& other) {
  return std::all_of(one.begin(), one.end(),
                     [&](const Term& term) { return has_setting(other, term.setting); });
}

std::string key_of(const std::vector<Conjunction>& causes) {
  std::vector<std::string> parts;
  for (const Conjunction& cause : causes) {
    std::string part;
    for (const Term& term : cause) {
      part.append(reinterpret_cast<const char*>(&term.setting), sizeof term.setting);
      part.append(reinterpret_cast<const char*>(&term.from), sizeof term.from);
      part.append(reinterpret_cast<const char*>(&term.to), sizeof term.to);
      part.append(reinterpret_cast<const char*>(&term.among), sizeof term.among);
    }
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end());
  std::string key;
  for (const std::string& part : parts) key += part + "/";
  return key;
}

}  // namespace

bool has_setting(const Conjunction& cause, std::size_t setting) {
  return std::any_of(cause.begin(), cause.end(),
                     [&](const Term& term) { return term.setting == setting; });
}

double log_choose(double n, double k) {
  if (k > n || k < 0.0) return -1e300;
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
}

Structures::Structures(std::vector<Axis> axes)
    : axes_(std::move(axes)), seen_(axes_.size()), random_(kWalkSeed) {
  const double count = static_cast<double>(axes_.size());
  order_odds_.push_back(-1e300);
  for (std::size_t order = 1; order <= kMostTerms; ++order) {
    order_odds_.push_back(std::log(kTermsBefore[order]) -
                          log_choose(count, static_cast<double>(order)));
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto wall = static_cast<std::int16_t>(axes_[i].wall);
    habits_.push_back(
        {static_cast<std::uint16_t>(i), wall, wall, std::uint64_t{1} << (axes_[i].wall % 64)});
    seen_[i].push_back({axes_[i].wall, {}});
  }
  for (std::size_t i = 0; i < kChains; ++i) {
    chains_.push_back({{random_cause(nullptr)}, 0.0, i % 3 == 2 ? 2.5 : 1.0});
  }
}

Positions Structures::all_at_wall() const {
  Positions all;
  for (const Axis& axis : axes_) all.push_back(static_cast<std::uint16_t>(axis.wall));
  return all;
}

Positions Structures::all_at_base() const {
  Positions all;
  for (const Axis& axis : axes_) all.push_back(static_cast<std::uint16_t>(axis.base));
  return all;
}

bool Structures::holds(const Term& term, int position) const {
  if (!axes_[term.setting].ordered) return term.among >> (position % 64) & 1;
  return position >= term.from && position <= term.to;
}

bool Structures::holds(const Structure& structure, const Positions& positions) const {
  return std::any_of(structure.causes.begin(), structure.causes.end(), [&](const auto& cause) {
    return std::all_of(cause.begin(), cause.end(),
                       [&](const Term& term) { return holds(term, positions[term.setting]); });
  });
}

bool Structures::was_tested(std::size_t setting, int position) const {
  return std::any_of(seen_[setting].begin(), seen_[setting].end(),
                     [&](const Seen& one) { return one.position == position; });
}

int Structures::open_before(const Term& term) const {
  int clear = axes_[term.setting].base;
  for (const Seen& one : seen_[term.setting]) {
    if (one.position < term.from) clear = std::max(clear, one.position);
  }
  return term.from - clear;
}

int Structures::open_after(const Term& term) const {
  int clear = axes_[term.setting].last + 1;
  for (const Seen& one : seen_[term.setting]) {
    if (one.position > term.to) clear = std::min(clear, one.position);
  }
  return clear - term.to;
}

/// The chance that a term holds at a position, where its classes leave that open.
double Structures::share_of(const Term& term, int position) const {
  const Axis& axis = axes_[term.setting];
  if (is_absent(term)) return position == axis.base ? 1.0 : 0.0;
  if (!axis.ordered) {
    if (position == axis.base || was_tested(term.setting, position)) {
      return holds(term, position) ? 1.0 : 0.0;
    }
    return kAmong;
  }
  if (position < term.from) {
    const int open = open_before(term);
    const int inside = position - (term.from - open);
    return inside <= 0 ? 0.0 : static_cast<double>(inside) / open;
  }
  if (position <= term.to) return 1.0;
  const int end = term.to + open_after(term);  // the first that is clear, or beyond all
  if (position >= end) return 0.0;
  const double each = (1.0 - kOpenEnd) / std::max(1, axis.last - axis.wall);
  const double rest = end > axis.last ? kOpenEnd - each : 0.0;
  return ((end - position) * each + rest) / ((end - term.to) * each + rest);
}

double Structures::odds_before(const Term& term) const {
  const Axis& axis = axes_[term.setting];
  if (is_absent(term)) return 0.0;
  if (!axis.ordered) {
    double odds = 0.0;
    for (const Seen& one : seen_[term.setting]) {
      if (one.position == axis.wall) continue;
      odds += std::log(holds(term, one.position) ? kAmong : 1.0 - kAmong);
    }
    return odds;
  }
  double odds = std::log(static_cast<double>(open_before(term)) / (axis.wall - axis.base));
  if (axis.last > axis.wall) {
    const int open = open_after(term);
    const double each = (1.0 - kOpenEnd) / (axis.last - axis.wall);
    odds += std::log(open * each + (term.to + open > axis.last ? kOpenEnd - each : 0.0));
  }
  return odds;
}

double Structures::odds_of_count(std::size_t causes) {
  return std::log(kCausesBefore[causes]) + std::lgamma(static_cast<double>(causes) + 1.0);
}

std::vector<std::size_t> Structures::terms_of_others(const std::vector<Conjunction>& causes,
                                                     std::size_t c) const {
  std::vector<std::size_t> settings;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    if (i == c) continue;
    for (const Term& term : causes[i]) {
      const bool known =
          std::find(settings.begin(), settings.end(), term.setting) != settings.end();
      if (!known && !is_absent(term)) settings.push_back(term.setting);
    }
  }
  return settings;
}

/// Of the settings of one cause, wherever its terms begin and end.
double Structures::odds_of_order(const std::vector<Conjunction>& causes, std::size_t c) const {
  const Conjunction& cause = causes[c];
  const auto absent = static_cast<std::size_t>(
      std::count_if(cause.begin(), cause.end(), [&](const Term& term) { return is_absent(term); }));
  const std::size_t present = cause.size() - absent;
  if (present == 0 || present > kMostTerms) return -1e300;
  if (absent == 0) return order_odds_[present];
  const std::vector<std::size_t> others = terms_of_others(causes, c);
  double odds = order_odds_[present];
  for (const Term& term : cause) {
    if (!is_absent(term)) continue;
    if (std::find(others.begin(), others.end(), term.setting) == others.end()) return -1e300;
    odds += std::log(kEmergent / static_cast<double>(others.size()));
  }
  return odds;
}

double Structures::odds_before(const std::vector<Conjunction>& causes) const {
  if (causes.empty() || causes.size() > kMostOfWall) return -1e300;
  double odds = odds_of_count(causes.size());
  for (std::size_t c = 0; c < causes.size(); ++c) {
    const Conjunction& cause = causes[c];
    const double of_order = odds_of_order(causes, c);
    if (of_order < -1e200) return -1e300;
    odds += of_order;
    for (const Term& term : cause) odds += odds_before(term);
    for (const Conjunction& other : causes) {
      if (&other != &cause && within(cause, other)) return -1e300;
    }
  }
  return odds;
}

TestSet Structures::tests_of(const Term& term) const {
  TestSet tests;
  const bool absent = is_absent(term);  // all but those that were seen elsewhere
  for (const Seen& one : seen_[term.setting]) {
    if (!absent && !holds(term, one.position)) continue;
    for (std::size_t w = 0; w < words_; ++w) tests.word(w) |= one.tests.word(w);
  }
  if (!absent) return tests;
  for (std::size_t w = 0; w < words_; ++w) tests.word(w) = ~tests.word(w);
  const std::size_t beyond = 64 * words_ - tests_.size();  // not tested yet
  tests.word(words_ - 1) &= beyond < 64 ? ~std::uint64_t{0} >> beyond : 0;
  return tests;
}

TestSet Structures::tests_of(const Conjunction& cause, std::size_t but) const {
  TestSet tests;
  for (std::size_t w = 0; w < words_; ++w) tests.word(w) = ~std::uint64_t{0};
  for (std::size_t i = 0; i < cause.size(); ++i) {
    if (i == but) continue;
    const TestSet one = tests_of(cause[i]);
    for (std::size_t w = 0; w < words_; ++w) tests.word(w) &= one.word(w);
  }
  return tests;
}

TestSet Structures::walls_of(const std::vector<Conjunction>& causes, std::size_t but) const {
  TestSet walls;
  for (std::size_t c = 0; c < causes.size(); ++c) {
    if (c == but) continue;
    const TestSet one = tests_of(causes[c], kNoTerm);
    for (std::size_t w = 0; w < words_; ++w) walls.word(w) |= one.word(w);
  }
  return walls;
}

std::vector<TestSet> Structures::walls_of_each(const std::vector<Conjunction>& causes) const {
  std::vector<TestSet> all;
  for (const Conjunction& cause : causes) all.push_back(tests_of(cause, kNoTerm));
  return all;
}

Term Structures::usual_term(std::size_t setting) const { return habits_[setting]; }

/// A position that was not tested before parts the classes that held it.
void Structures::split(std::size_t setting, int position) {
  seen_[setting].push_back({position, {}});
  const Axis& axis = axes_[setting];
  if (axis.ordered && position < axis.base) return;
  std::vector<Structure> more;
  for (auto& [key, structure] : kept_) {
    for (std::size_t c = 0; c < structure.causes.size(); ++c) {
      for (std::size_t t = 0; t < structure.causes[c].size(); ++t) {
        const Term& term = structure.causes[c][t];
        if (term.setting != setting || is_absent(term) || holds(term, position)) continue;
        Structure other = structure;
        Term& changed = other.causes[c][t];
        if (!axis.ordered) {
          changed.among |= std::uint64_t{1} << (position % 64);
        } else if (position < term.from) {
          changed.from = static_cast<std::int16_t>(position);
        } else {
          changed.to = static_cast<std::int16_t>(position);
        }
        other.walls = walls_of(other.causes, kNoTerm);
        more.push_back(std::move(other));
      }
    }
  }
  for (Structure& one : more) kept_.emplace(key_of(one.causes), std::move(one));
  for (auto& [key, structure] : kept_) structure.before = odds_before(structure.causes);
}

std::size_t Structures::add_test(const Positions& positions) {
  const std::size_t test = tests_.size();
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (positions[i] != axes_[i].base && !was_tested(i, positions[i])) split(i, positions[i]);
  }
  tests_.push_back(positions);
  words_ = test / 64 + 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (Seen& one : seen_[i]) {
      if (one.position == positions[i]) one.tests.set(test);
    }
  }
  for (auto& [key, structure] : kept_) {
    if (holds(structure, positions)) structure.walls.set(test);
  }
  return test;
}

void Structures::keep(const std::vector<Conjunction>& causes, double before, double score) {
  if (score < best_ - kFarBehind) return;
  best_ = std::max(best_, score);
  auto [place, fresh] = kept_.try_emplace(key_of(causes));
  if (!fresh) return;
  place->second.causes = causes;
  place->second.before = before;
  place->second.walls = walls_of(causes, kNoTerm);
  place->second.score = before + told_by_all(place->second.walls);
  best_ = std::max(best_, place->second.score);
  if (kept_.size() > 2 * kMostKept) prune(kMostKept);
}

void Structures::keep_always(const Structure& structure) {
  kept_.insert_or_assign(key_of(structure.causes), structure);
}

void Structures::prune(std::size_t most) {
  std::vector<double> scores;
  for (const auto& [key, structure] : kept_) scores.push_back(structure.score);
  double least = best_ - kFarBehind;
  if (scores.size() > most) {
    std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(most),
                     scores.end(), std::greater<>());
    least = std::max(least, scores[most]);
  }
  std::size_t equal = 0;
  std::erase_if(kept_, [&](const auto& one) {
    return one.second.score < least || (one.second.score == least && ++equal > most);
  });
}

void Structures::adopt(const Structures& other) {
  for (const auto& [key, structure] : other.kept_) kept_.try_emplace(key, structure);
}

double Structures::log_odds() const {
  double sum = 0.0;
  for (const auto& [key, structure] : kept_) sum += std::exp(structure.score - best_);
  return best_ + std::log(sum);
}

/// The chances of what is kept. Of structures with a cause more than the likeliest there are too
/// many to keep; together they are worth what the healed walls say.
void Structures::settle() {
  likely_.clear();
  for (const auto& [key, structure] : kept_) likely_.push_back(structure);
  if (likely_.empty()) return;
  share_out();
  weigh_views();
}

void Structures::judge_by_own(const std::function<double(const std::vector<TestSet>&)>& by_own,
                              std::size_t most) {
  double weight = 0.0;
  double sum = 0.0;
  const double best = likely_.empty() ? 0.0 : likely_.front().score;
  for (std::size_t i = 0; i < likely_.size(); ++i) {
    Structure& one = likely_[i];
    const double share = std::exp(one.score - best);
    const double more = i < most       ? by_own(walls_of_each(one.causes)) - told_by_all(one.walls)
                        : weight > 0.0 ? sum / weight
                                       : 0.0;
    one.score += more;
    if (i == 0 || i >= most) continue;
    weight += share;
    sum += share * more;
  }
  if (!likely_.empty()) share_out();
}

void Structures::share_out() {
  std::sort(likely_.begin(), likely_.end(),
            [](const Structure& a, const Structure& b) { return a.score > b.score; });
  heal();
  const std::size_t count = likely_.front().causes.size();
  double fewer = 0.0;
  double more = 0.0;
  for (Structure& one : likely_) {
    one.chance = std::exp(one.score - likely_.front().score);
    (one.causes.size() > count ? more : fewer) += one.chance;
  }
  const double wanted = further_ * likely_.front().chance;
  const double scale = more > 0.0 ? std::max(1.0, wanted / more) : 1.0;
  const double all = fewer + (more > 0.0 ? scale * more : wanted);
  for (Structure& one : likely_) {
    one.chance *= (one.causes.size() > count ? scale : 1.0) / all;
  }
}

double Structures::chance_of(const Structure& structure, const Positions& positions) const {
  double clear = 1.0;
  for (const Conjunction& cause : structure.causes) {
    double wall = 1.0;
    for (const Term& term : cause) wall *= share_of(term, positions[term.setting]);
    clear *= 1.0 - wall;
  }
  return 1.0 - clear;
}

double Structures::chance_of(const Positions& positions) const {
  double chance = 0.0;
  for (const Structure& one : likely_) {
    if (one.chance > 1e-7) chance += one.chance * chance_of(one, positions);
  }
  return chance;
}

double Structures::chance_of_settings() const {
  double chance = 0.0;
  const auto same = [](const std::vector<Conjunction>& a, const std::vector<Conjunction>& b) {
    if (a.size() != b.size()) return false;
    return std::all_of(a.begin(), a.end(), [&](const Conjunction& one) {
      return std::any_of(b.begin(), b.end(), [&](const Conjunction& other) {
        return one.size() == other.size() && within(one, other);
      });
    });
  };
  for (const Structure& one : likely_) {
    if (one.chance > 1e-7 && same(one.causes, likely_.front().causes)) chance += one.chance;
  }
  return chance;
}

}  // namespace greynic::causal
