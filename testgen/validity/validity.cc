#include "validity/validity.h"

#include <algorithm>

#include "validity/space_solver.h"

namespace greynic::testgen {
namespace {

/// Conflicts before a question goes to CaDiCaL. Most questions need none; a few thousand cost about
/// as much as setting the solver up.
constexpr std::uint64_t kSearchBudget = 2000;
/// Learned clauses kept before the longer half is dropped.
constexpr std::size_t kMostLearned = 20000;

}  // namespace

Validity::~Validity() = default;

Validity::Validity(const Space& space, const ValueIndex& index) : index_(index), space_(space) {
  literal_.resize(index.values());
  std::uint32_t variables = 0;
  for (std::uint32_t p = 0; p < index.parameters(); ++p) {
    const Value first = index.first(p);
    if (index.level_count(p) == 2) {
      literal_[first] = 2 * variables + 1;
      literal_[first + 1] = 2 * variables;
      parameter_of_.push_back(p);
      ++variables;
    } else {
      for (Value v = first; v < index.first(p) + index.level_count(p); ++v) {
        literal_[v] = 2 * variables++;
        parameter_of_.push_back(p);
      }
    }
  }
  value_of_.assign(2 * variables, kNoValue);
  for (Value v = 0; v < index.values(); ++v) value_of_[literal_[v]] = v;
  truth_.assign(2 * variables, 0);
  reason_.resize(variables);
  level_of_.assign(variables, 0);
  seen_.assign(variables, 0);
  implied_.resize(2 * variables);
  watches_.resize(2 * variables);
  constrained_.assign(index.parameters(), 0);
  open_levels_.resize(index.parameters());
  witness_.resize(index.parameters());
  for (std::uint32_t p = 0; p < index.parameters(); ++p) {
    open_levels_[p] = index.level_count(p);
    witness_[p] = index.first(p);
    if (index.level_count(p) == 1) enqueue(literal_[index.first(p)], {});
  }
  for (const Clause& clause : space.clauses) {
    std::vector<Lit> lits;
    for (const Literal& l : clause) {
      lits.push_back(literal(l));
      constrained_[l.parameter] = 1;
    }
    if (!add_clause(std::move(lits), false)) possible_ = false;
  }
  std::vector<std::uint32_t> mentions(index.parameters(), 0);
  for (const Clause& clause : space.clauses) {
    for (const Literal& l : clause) ++mentions[l.parameter];
  }
  for (std::uint32_t p = 0; p < index.parameters(); ++p) {
    if (constrained_[p]) decide_order_.push_back(p);
  }
  std::stable_sort(decide_order_.begin(), decide_order_.end(),
                   [&](auto a, auto b) { return mentions[a] > mentions[b]; });
  original_arena_ = arena_.size();
  if (possible_) possible_ = propagate();
  if (possible_) possible_ = feasible({});
}

Validity::Lit Validity::literal(const Literal& l) const {
  return literal_[index_.value(l.parameter, l.level)] ^ (l.positive ? 0U : 1U);
}

bool Validity::add_clause(std::vector<Lit> clause, bool learned) {
  // Called at level 0 for clauses of the space, or with a learned clause whose first literal is to
  // be asserted and whose second one has the highest level of the others.
  if (!learned) {
    std::sort(clause.begin(), clause.end());
    clause.erase(std::unique(clause.begin(), clause.end()), clause.end());
    for (std::size_t i = 0; i + 1 < clause.size(); ++i) {
      if ((clause[i] ^ 1U) == clause[i + 1]) return true;
    }
    std::erase_if(clause, [&](Lit l) { return truth_[l] < 0; });
    if (std::any_of(clause.begin(), clause.end(), [&](Lit l) { return truth_[l] > 0; }))
      return true;
    if (clause.empty()) return false;
    if (clause.size() == 1) {
      enqueue(clause[0], {});
      return propagate();
    }
  }
  if (clause.size() == 2) {
    implied_[clause[0] ^ 1U].push_back(clause[1]);
    implied_[clause[1] ^ 1U].push_back(clause[0]);
    return true;
  }
  const auto at = static_cast<std::uint32_t>(arena_.size());
  arena_.push_back(static_cast<Lit>(clause.size()));
  arena_.insert(arena_.end(), clause.begin(), clause.end());
  attach(at);
  if (learned) ++learned_;
  return true;
}

void Validity::attach(std::uint32_t clause) {
  watches_[arena_[clause + 1]].push_back({clause, arena_[clause + 2]});
  watches_[arena_[clause + 2]].push_back({clause, arena_[clause + 1]});
}

void Validity::enqueue(Lit lit, Reason reason) {
  truth_[lit] = 1;
  truth_[lit ^ 1U] = -1;
  const std::uint32_t variable = lit >> 1;
  reason_[variable] = reason;
  level_of_[variable] = level();
  trail_.push_back(lit);
  if (value_of_[lit] != kNoValue) {
    row_.push_back(value_of_[lit]);
  }
  if ((lit & 1U) != 0 && value_of_[lit] == kNoValue) --open_levels_[parameter_of_[variable]];
}

bool Validity::propagate() {
  while (done_ < trail_.size()) {
    const Lit lit = trail_[done_++];
    const std::uint32_t p = parameter_of_[lit >> 1];
    const std::uint32_t levels = index_.level_count(p);
    if (levels > 2) {
      const Value first = index_.first(p);
      if ((lit & 1U) == 0) {  // it has this level, so no other
        for (Value v = first; v < first + levels; ++v) {
          const Lit other = literal_[v];
          if (other == lit || truth_[other] < 0) continue;
          if (truth_[other] > 0) {
            conflict_ = {lit ^ 1U, other ^ 1U};
            return false;
          }
          enqueue(other ^ 1U, {Why::kOneLevelOnly, lit});
        }
      } else if (open_levels_[p] <= 1 && reason_[lit >> 1].why != Why::kOneLevelOnly) {
        Lit last = ~Lit{0};
        bool has = false;
        for (Value v = first; v < first + levels; ++v) {
          if (truth_[literal_[v]] > 0) has = true;
          if (truth_[literal_[v]] == 0) last = literal_[v];
        }
        if (!has) {
          if (last == ~Lit{0}) {
            conflict_.clear();
            for (Value v = first; v < first + levels; ++v) conflict_.push_back(literal_[v]);
            return false;
          }
          enqueue(last, {Why::kLastLevel, p});
        }
      }
    }
    for (const Lit next : implied_[lit]) {
      if (truth_[next] > 0) continue;
      if (truth_[next] < 0) {
        conflict_ = {lit ^ 1U, next};
        return false;
      }
      enqueue(next, {Why::kBinary, lit});
    }
    const Lit falsified = lit ^ 1U;
    auto& list = watches_[falsified];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Watch watch = list[i];
      if (truth_[watch.blocker] > 0) {
        list[kept++] = watch;
        continue;
      }
      Lit* c = &arena_[watch.clause + 1];
      const Lit size = arena_[watch.clause];
      if (c[0] == falsified) std::swap(c[0], c[1]);
      if (truth_[c[0]] > 0) {
        list[kept++] = {watch.clause, c[0]};
        continue;
      }
      bool moved = false;
      for (Lit k = 2; k < size; ++k) {
        if (truth_[c[k]] >= 0) {
          std::swap(c[1], c[k]);
          watches_[c[1]].push_back({watch.clause, c[0]});
          moved = true;
          break;
        }
      }
      if (moved) continue;
      list[kept++] = {watch.clause, c[0]};
      if (truth_[c[0]] < 0) {
        conflict_.assign(c, c + size);
        for (++i; i < list.size(); ++i) list[kept++] = list[i];
        list.resize(kept);
        return false;
      }
      enqueue(c[0], {Why::kClause, watch.clause});
    }
    list.resize(kept);
  }
  return true;
}

void Validity::undo_to(std::uint32_t target) {
  if (level() <= target) return;
  for (std::size_t i = trail_.size(); i > limits_[target];) {
    const Lit lit = trail_[--i];
    truth_[lit] = truth_[lit ^ 1U] = 0;
    if ((lit & 1U) != 0 && value_of_[lit] == kNoValue) ++open_levels_[parameter_of_[lit >> 1]];
  }
  trail_.resize(limits_[target]);
  row_.resize(row_limits_[target]);
  limits_.resize(target);
  row_limits_.resize(target);
  done_ = trail_.size();
}

void Validity::restart() {
  undo_to(0);
  base_ = 0;
  alive_ = possible_;
  conflicts_ = 0;
  assumed_.clear();
  for (const Lit unit : units_) {
    if (truth_[unit] < 0) possible_ = alive_ = false;
    if (truth_[unit] == 0) enqueue(unit, {});
  }
  units_.clear();
  if (alive_ && !propagate()) possible_ = alive_ = false;
  if (learned_ > kMostLearned) shrink_learned();
}

bool Validity::assume(std::span<const Value> values) {
  for (const Value v : values) {
    const Lit lit = literal_[v];
    assumed_.push_back(v);
    if (!alive_ || truth_[lit] < 0) return alive_ = false;
    if (truth_[lit] > 0) continue;
    limits_.push_back(static_cast<std::uint32_t>(trail_.size()));
    row_limits_.push_back(static_cast<std::uint32_t>(row_.size()));
    base_ = level();
    enqueue(lit, {});
    if (!propagate()) return alive_ = false;
  }
  return alive_;
}

bool Validity::choose(Value v) {
  limits_.push_back(static_cast<std::uint32_t>(trail_.size()));
  row_limits_.push_back(static_cast<std::uint32_t>(row_.size()));
  enqueue(literal_[v], {});
  if (propagate()) return true;
  recover();
  return false;
}

bool Validity::search(std::uint64_t budget, const Value* wish) {
  std::size_t next = 0;
  while (alive_ && next < decide_order_.size()) {
    const std::uint32_t p = decide_order_[next];
    const Value first = index_.first(p);
    const std::uint32_t levels = index_.level_count(p);
    Value pick = kNoValue;
    bool has = false;
    for (std::uint32_t l = 0; l < levels && !has; ++l) {
      const Value v = first + l;
      if (chosen(v)) has = true;
      if (pick == kNoValue && allowed(v)) pick = v;
    }
    if (has) {
      ++next;
      continue;
    }
    if (wish != nullptr && allowed(wish[p])) pick = wish[p];
    if (!choose(pick)) {
      if (conflicts_ > budget) return false;
      next = 0;
    }
  }
  return alive_;
}

bool Validity::complete(const Value* wish) {
  if (!alive_) return false;
  if (search(conflicts_ + kSearchBudget, wish)) return true;
  return alive_ && ask_solver();
}

bool Validity::ask_solver() {
  if (!solver_) solver_ = std::make_unique<SpaceSolver>(space_);
  std::vector<Literal> assumptions;
  for (const Value v : assumed_)
    assumptions.push_back({index_.parameter(v), index_.level(v), true});
  const auto model = solver_->solve(assumptions);
  if (!model) return alive_ = false;
  undo_to(base_);
  for (const std::uint32_t p : decide_order_) {
    const Value v = index_.value(p, (*model)[p]);
    if (!chosen(v) && !choose(v)) return alive_ = false;  // cannot be: what was learned is implied
  }
  return alive_;
}

bool Validity::feasible(std::span<const Value> values) {
  restart();
  if (!assume(values)) {
    restart();
    return false;
  }
  const bool found = complete(witness_.data());
  if (found) {
    for (const Value v : row_) witness_[index_.parameter(v)] = v;
  }
  restart();
  return found;
}

void Validity::forbid(std::span<const Value> values) {
  restart();
  std::vector<Lit> clause;
  for (const Value v : values) clause.push_back(literal_[v] ^ 1U);
  if (!add_clause(std::move(clause), false)) possible_ = false;
}

bool Validity::satisfied(std::span<const Value> row) const {
  return std::all_of(space_.clauses.begin(), space_.clauses.end(), [&](const Clause& clause) {
    return std::any_of(clause.begin(), clause.end(), [&](const Literal& l) {
      return (row[l.parameter] == index_.value(l.parameter, l.level)) == l.positive;
    });
  });
}

std::vector<std::size_t> Validity::unsatisfiable_core(const Space& space, const ValueIndex& index) {
  // Clauses are taken away one by one as long as no row becomes valid; beyond a few hundred that is
  // done in blocks only, which keeps the time in hand.
  std::vector<std::size_t> core(space.clauses.size());
  for (std::size_t i = 0; i < core.size(); ++i) core[i] = i;
  const auto refuted = [&](const std::vector<std::size_t>& chosen) {
    Space part;
    part.parameters = space.parameters;
    for (const std::size_t i : chosen) part.clauses.push_back(space.clauses[i]);
    return !Validity(part, index).possible();
  };
  for (std::size_t block = std::max<std::size_t>(1, core.size() / 2);; block /= 2) {
    for (std::size_t at = 0; at < core.size();) {
      std::vector<std::size_t> rest(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(at));
      const std::size_t end = std::min(core.size(), at + block);
      rest.insert(rest.end(), core.begin() + static_cast<std::ptrdiff_t>(end), core.end());
      if (refuted(rest)) {
        core = std::move(rest);
      } else {
        at = end;
      }
    }
    if (block == 1 || core.size() / block > 1000) break;
  }
  return core;
}

}  // namespace greynic::testgen
