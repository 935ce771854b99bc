/// What a dead end teaches: the clause that forbids it from now on, and how many such clauses stay.

#include <algorithm>

#include "validity/validity.h"

namespace greynic::testgen {

void Validity::reason_literals(Lit lit, std::vector<Lit>& out) const {
  const Reason reason = reason_[lit >> 1];
  switch (reason.why) {
    case Why::kChoice:
      break;
    case Why::kBinary:
    case Why::kOneLevelOnly:
      out.push_back(reason.from ^ 1U);
      break;
    case Why::kClause:
      for (Lit k = 0; k < arena_[reason.from]; ++k) {
        const Lit other = arena_[reason.from + 1 + k];
        if (other != lit) out.push_back(other);
      }
      break;
    case Why::kLastLevel:
      for (Value v = index_.first(reason.from);
           v < index_.first(reason.from) + index_.level_count(reason.from); ++v) {
        if (literal_[v] != lit) out.push_back(literal_[v]);
      }
      break;
  }
}

/// First unique implication point of conflict_: the clause to learn, its asserted literal first,
/// and the level to go back to.
void Validity::learn(std::vector<Lit>& clause, std::uint32_t& back_to) {
  clause.assign(1, 0);
  std::vector<Lit> todo = conflict_;
  std::vector<std::uint32_t> marked;
  std::size_t open = 0;
  std::size_t at = trail_.size();
  Lit pivot = 0;
  while (true) {
    for (const Lit lit : todo) {
      const std::uint32_t variable = lit >> 1;
      if (seen_[variable] || level_of_[variable] == 0) continue;
      seen_[variable] = 1;
      marked.push_back(variable);
      if (level_of_[variable] == level()) {
        ++open;
      } else {
        clause.push_back(lit);
      }
    }
    do {
      --at;
    } while (!seen_[trail_[at] >> 1]);
    pivot = trail_[at];
    if (--open == 0) break;
    todo.clear();
    reason_literals(pivot, todo);
  }
  clause[0] = pivot ^ 1U;
  // A literal whose reason lies wholly inside the clause adds nothing.
  std::size_t kept = 1;
  for (std::size_t i = 1; i < clause.size(); ++i) {
    const Lit lit = clause[i];
    bool needed = reason_[lit >> 1].why == Why::kChoice;
    if (!needed) {
      todo.clear();
      reason_literals(lit ^ 1U, todo);
      needed = std::any_of(todo.begin(), todo.end(),
                           [&](Lit l) { return !seen_[l >> 1] && level_of_[l >> 1] != 0; });
    }
    if (needed) clause[kept++] = lit;
  }
  clause.resize(kept);
  for (const std::uint32_t variable : marked) seen_[variable] = 0;
  back_to = 0;
  for (std::size_t i = 1; i < clause.size(); ++i) {
    const std::uint32_t l = level_of_[clause[i] >> 1];
    if (l > back_to) {
      back_to = l;
      std::swap(clause[1], clause[i]);
    }
  }
}

/// After a conflict: learns and goes back until propagation is content again; false when what was
/// assumed is itself refuted.
bool Validity::recover() {
  std::vector<Lit> clause;
  do {
    ++conflicts_;
    if (level() <= base_) return alive_ = false;
    std::uint32_t back_to = 0;
    learn(clause, back_to);
    // Every literal but the first is false at back_to already, so staying at base_ is sound as
    // well.
    undo_to(std::max(back_to, base_));
    Reason reason;
    if (clause.size() == 1) {
      units_.push_back(clause[0]);
    } else if (clause.size() == 2) {
      add_clause(clause, true);
      reason = {Why::kBinary, clause[1] ^ 1U};
    } else {
      reason = {Why::kClause, static_cast<std::uint32_t>(arena_.size())};
      add_clause(clause, true);
    }
    enqueue(clause[0], reason);
  } while (!propagate());
  return true;
}

void Validity::shrink_learned() {
  std::vector<std::uint32_t> sizes;
  for (std::size_t at = original_arena_; at < arena_.size(); at += arena_[at] + 1) {
    sizes.push_back(arena_[at]);
  }
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  const std::uint32_t longest = sizes[sizes.size() / 2];
  std::size_t kept = original_arena_;
  learned_ = 0;
  for (std::size_t at = original_arena_; at < arena_.size();) {
    const std::size_t size = arena_[at] + 1;
    if (arena_[at] < longest) {
      std::copy_n(arena_.begin() + static_cast<std::ptrdiff_t>(at), size,
                  arena_.begin() + static_cast<std::ptrdiff_t>(kept));
      kept += size;
      ++learned_;
    }
    at += size;
  }
  arena_.resize(kept);
  for (auto& list : watches_) list.clear();
  for (std::size_t at = 0; at < arena_.size(); at += arena_[at] + 1) {
    // At level 0 a clause may hold false literals; watch two that are not, where there are any.
    Lit* c = &arena_[at + 1];
    std::stable_partition(c, c + arena_[at], [&](Lit l) { return truth_[l] >= 0; });
    attach(static_cast<std::uint32_t>(at));
  }
  // Reasons at level 0 are never looked at, so the moved clauses leave no dangling one.
}

}  // namespace greynic::testgen
