#include <algorithm>
#include <cmath>

#include "structures.h"

namespace greynic::causal {
namespace {

constexpr double kMostAlike = 16.0;          // neighbours of a structure that are kept at a time
constexpr double kEmergentAmongMany = 0.01;  // where the others' terms are not counted

bool in_order(const Term& a, const Term& b) { return a.setting < b.setting; }

}  // namespace

std::size_t Structures::draw(const std::vector<double>& scores, double heat) {
  const double best = *std::max_element(scores.begin(), scores.end());
  double all = 0.0;
  for (const double score : scores) all += std::exp((score - best) / heat);
  double left = random_.uniform() * all;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    left -= std::exp((scores[i] - best) / heat);
    if (left <= 0.0) return i;
  }
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// One term (or none: `but` is beyond all) gives way to each other setting, or to nothing.
void Structures::move_term(Chain& chain, std::size_t c, std::size_t but) {
  std::vector<Conjunction> causes = chain.causes;
  Conjunction rest = causes[c];
  if (but < rest.size()) rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(but));
  if (rest.size() >= kMostTerms) return;
  const TestSet others = walls_of(chain.causes, c);
  const TestSet base = tests_of(rest, kNoTerm);
  std::vector<double> scores, befores;
  std::vector<std::size_t> settings;
  double before_rest = odds_of_count(chain.causes.size());
  for (std::size_t i = 0; i < causes.size(); ++i) {
    if (i != c) before_rest += odds_of_order(causes, i);
    for (const Term& term : i == c ? rest : causes[i]) before_rest += odds_before(term);
  }
  causes[c] = rest;
  const auto absent = static_cast<std::size_t>(
      std::count_if(rest.begin(), rest.end(), [&](const Term& term) { return is_absent(term); }));
  const std::size_t present = rest.size() - absent;
  before_rest += static_cast<double>(absent) * std::log(kEmergentAmongMany);
  TestSet walls;
  for (std::size_t s = 0; s <= size(); ++s) {
    if (s == size() ? present == 0 : has_setting(rest, s)) continue;
    double before = before_rest + order_odds_[present + (s < size() ? 1 : 0)];
    if (s < size()) {
      const Term term = usual_term(s);
      const TestSet one = tests_of(term);
      for (std::size_t w = 0; w < words_; ++w) {
        walls.word(w) = others.word(w) | (base.word(w) & one.word(w));
      }
      before += odds_before(term);
    } else {
      for (std::size_t w = 0; w < words_; ++w) walls.word(w) = others.word(w) | base.word(w);
    }
    scores.push_back(before + told_by(walls));
    settings.push_back(s);
    befores.push_back(before);
  }
  const auto with = [&](std::size_t s) {
    causes[c] = rest;
    if (s == size()) return;
    causes[c].push_back(usual_term(s));
    std::sort(causes[c].begin(), causes[c].end(), in_order);
  };
  // Where many are alike, some of them stand for all.
  const double all_alike = static_cast<double>(std::count_if(
      scores.begin(), scores.end(), [&](double score) { return score >= best_ - kFarBehind; }));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] < best_ - kFarBehind) continue;
    if (scores[i] < best_ && random_.uniform() * all_alike > kMostAlike) continue;
    with(settings[i]);
    const double before = odds_before(causes);
    if (before > -1e200) keep(causes, before, scores[i] - befores[i] + before);
  }
  const std::size_t chosen = draw(scores, chain.heat);
  with(settings[chosen]);
  const double before = odds_before(causes);
  if (before < -1e200) return;
  chain.causes = causes;
  chain.score = scores[chosen] - befores[chosen] + before;
}

/// A setting of another cause must be absent, beside the terms or in place of one of them; or none.
void Structures::move_absent(Chain& chain, std::size_t c) {
  std::vector<Conjunction> causes = chain.causes;
  Conjunction rest = causes[c];
  std::erase_if(rest, [&](const Term& term) { return is_absent(term); });
  std::vector<Conjunction> options = {rest};
  for (const std::size_t s : terms_of_others(chain.causes, c)) {
    if (has_setting(rest, s)) continue;
    const auto base = static_cast<std::int16_t>(axes_[s].base);
    for (std::size_t but = 0; but <= rest.size(); ++but) {
      Conjunction option = rest;
      if (but < rest.size()) option.erase(option.begin() + static_cast<std::ptrdiff_t>(but));
      option.push_back({static_cast<std::uint16_t>(s), base, base, 1});
      std::sort(option.begin(), option.end(), in_order);
      options.push_back(std::move(option));
    }
  }
  std::vector<double> scores;
  std::erase_if(options, [&](const Conjunction& option) {
    causes[c] = option;
    const double before = odds_before(causes);
    if (before < -1e200) return true;
    scores.push_back(before + told_by(walls_of(causes, kNoTerm)));
    keep(causes, before, scores.back());
    return false;
  });
  if (options.empty()) return;
  const std::size_t chosen = draw(scores, chain.heat);
  chain.causes[c] = options[chosen];
  chain.score = scores[chosen];
}

/// The two ends of a term, or each of its categories.
void Structures::move_ends(Chain& chain, std::size_t c, std::size_t t) {
  const Term term = chain.causes[c][t];
  const Axis& axis = axes_[term.setting];
  if (seen_[term.setting].size() < 2 || is_absent(term)) return;
  std::vector<Term> options;
  if (axis.ordered) {
    for (const bool begin : {true, false}) {
      for (const Seen& one : seen_[term.setting]) {
        Term other = term;
        if (begin ? one.position > axis.wall : one.position < axis.wall) continue;
        if (one.position <= axis.base) continue;
        (begin ? other.from : other.to) = static_cast<std::int16_t>(one.position);
        options.push_back(other);
      }
    }
  } else {
    options.push_back(term);
    for (const Seen& one : seen_[term.setting]) {
      if (one.position == axis.wall) continue;
      Term other = term;
      other.among ^= std::uint64_t{1} << (one.position % 64);
      options.push_back(other);
    }
  }
  const TestSet others = walls_of(chain.causes, c);
  const TestSet base = tests_of(chain.causes[c], t);
  std::vector<Conjunction> causes = chain.causes;
  const double before = odds_before(causes) - odds_before(term);
  std::vector<double> scores;
  for (const Term& option : options) {
    const TestSet one = tests_of(option);
    TestSet walls;
    for (std::size_t w = 0; w < words_; ++w) {
      walls.word(w) = others.word(w) | (base.word(w) & one.word(w));
    }
    const double mine = before + odds_before(option);
    scores.push_back(mine + told_by(walls));
    causes[c][t] = option;
    keep(causes, mine, scores.back());
  }
  const std::size_t chosen = draw(scores, chain.heat);
  chain.causes[c][t] = options[chosen];
  chain.score = scores[chosen];
  habits_[term.setting] = options[chosen];
}

/// Of settings that are at the wall's level in one configuration; nothing: anywhere.
Conjunction Structures::random_cause(const Positions* inside) {
  std::vector<std::size_t> settings;
  for (std::size_t i = 0; i < size(); ++i) {
    if (inside == nullptr || (*inside)[i] == axes_[i].wall) settings.push_back(i);
  }
  Conjunction cause;
  double left = random_.uniform();
  std::size_t order = 1;
  while (order < 5 && (left -= kTermsBefore[order]) > 0.0) ++order;
  while (cause.size() < order && !settings.empty()) {
    const std::size_t place = random_.below(static_cast<std::uint32_t>(settings.size()));
    cause.push_back(usual_term(settings[place]));
    settings.erase(settings.begin() + static_cast<std::ptrdiff_t>(place));
  }
  std::sort(cause.begin(), cause.end(), in_order);
  return cause;
}

/// A cause more, where a wall was seen that none of the others explains.
void Structures::add_cause(Chain& chain) {
  if (chain.causes.size() >= kMostOfWall) return;
  const TestSet walls = walls_of(chain.causes, kNoTerm);
  std::vector<double> scores;
  std::vector<std::size_t> tests;
  const std::vector<double>& evidence = views_.evidence[view_];
  for (std::size_t i = 0; i < tests_.size(); ++i) {
    if (walls.has(i) || evidence[i] < 0.5) continue;
    tests.push_back(i);
    scores.push_back(std::min(evidence[i], 6.0));
  }
  if (tests.empty()) return;
  Chain longer = chain;
  longer.causes.push_back(random_cause(&tests_[tests[draw(scores, 2.0)]]));
  const std::size_t c = longer.causes.size() - 1;
  if (longer.causes[c].empty() || odds_before(longer.causes) < -1e200) return;
  for (int round = 0; round < 6; ++round) {
    const std::size_t terms = longer.causes[c].size();
    move_term(longer, c, random_.below(static_cast<std::uint32_t>(terms + 1)));
    if (round % 2 == 0) move_absent(longer, c);
  }
  if (std::log(random_.uniform() + 1e-300) * chain.heat < longer.score - chain.score) {
    chain = longer;
  }
}

void Structures::drop_cause(Chain& chain, std::size_t cause) {
  if (chain.causes.size() < 2) return;
  std::vector<Conjunction> fewer = chain.causes;
  fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(cause));
  const double before = odds_before(fewer);
  const double score = before + told_by(walls_of(fewer, kNoTerm));
  keep(fewer, before, score);
  if (std::log(random_.uniform() + 1e-300) * chain.heat < score - chain.score) {
    chain.causes = std::move(fewer);
    chain.score = score;
  }
}

void Structures::step(Chain& chain) {
  const std::size_t c = random_.below(static_cast<std::uint32_t>(chain.causes.size()));
  const std::size_t terms = chain.causes[c].size();
  const double move = random_.uniform();
  if (move < 0.12) return add_cause(chain);
  if (move < 0.17) return drop_cause(chain, c);
  if (move < 0.22 && chain.causes.size() > 1) return move_absent(chain, c);
  if (move < 0.72) move_term(chain, c, random_.below(static_cast<std::uint32_t>(terms + 1)));
  const std::size_t now = chain.causes[c].size();
  move_ends(chain, c, random_.below(static_cast<std::uint32_t>(now)));
}

/// Half of the chains walk on, half begin anew: from a structure that is kept, or from nothing.
void Structures::restart(Chain& chain) {
  const double way = random_.uniform();
  if (way < 0.5 || likely_.empty()) return;
  if (way < 0.58) {
    chain.causes = {random_cause(nullptr)};
    return;
  }
  double left = random_.uniform();
  for (const Structure& one : likely_) {
    left -= one.chance;
    chain.causes = one.causes;
    if (left <= 0.0) return;
  }
}

}  // namespace greynic::causal
