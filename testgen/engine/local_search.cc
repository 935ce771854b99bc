#include "engine/local_search.h"

#include <algorithm>

namespace greynic::testgen {

/// Visits the partners with which v forms a tuple in the row that at most one of the rows that hold
/// v now has: visit(partners, holders). The row itself must not be among those.
template <typename Visit>
void LocalSearch::for_each_scarce(std::uint32_t row, Value v, Visit&& visit) {
  const std::uint32_t p = index_.parameter(v);
  const std::vector<Value>& values = rows_[row];
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (!in_layer_[l][p]) continue;
    const std::size_t partners = static_cast<std::size_t>(layers_[l].strength) - 1;
    const auto& members = layers_[l].parameters;
    if (partners == 2) {
      for_each_scarce_triple(row, v, l, visit);
      continue;
    }
    std::array<Value, 5> chosen{};
    if (partners <= 1) {
      work_ += members.size();
      if (partners == 0) {
        const Holders h = holders(rows_with(v), rows_with(v), row_words_);
        if (h.count <= 1) visit(std::span<const Value>(), h);
        continue;
      }
      for (const std::uint32_t q : members) {
        if (q == p || !test_bit(wanted_.data(), values[q])) continue;
        chosen[0] = values[q];
        const Holders h = holders(rows_with(chosen[0]), rows_with(v), row_words_);
        if (h.count <= 1) visit(std::span<const Value>(chosen.data(), 1), h);
      }
      continue;
    }
    scratch_.resize(partners * row_words_);
    const auto descend = [&](const auto& self, std::size_t depth, std::size_t from,
                             const Word* held) -> void {
      work_ += (members.size() - std::min(from, members.size())) * (1 + row_words_ / 4);
      for (std::size_t i = from; i < members.size(); ++i) {
        const std::uint32_t q = members[i];
        if (q == p || !test_bit(wanted_.data(), values[q])) continue;
        chosen[depth] = values[q];
        if (depth + 1 == partners) {
          const Holders h = holders(rows_with(values[q]), held, row_words_);
          if (h.count <= 1) visit(std::span<const Value>(chosen.data(), partners), h);
          continue;
        }
        const Word* mine = rows_with(values[q]);
        Word* both = &scratch_[depth * row_words_];
        for (std::size_t w = 0; w < row_words_; ++w) both[w] = mine[w] & held[w];
        self(self, depth + 1, i + 1, both);
      }
    };
    descend(descend, 0, 0, rows_with(v));
  }
}

/// The same for triples. Another row with v holds those triples whose partners it shares with this
/// row, so the shared sets of all such rows are summed up, one and two or more apart, by whole
/// words. Most triples are held twice after a few rows, so a partner is dropped as soon as all of
/// its triples are, and of its words only those between the first and the last that matter are
/// looked at.
template <typename Visit>
void LocalSearch::for_each_scarce_triple(std::uint32_t row, Value v, std::size_t l, Visit&& visit) {
  Words& own = own_;  // without v, which is not in the row now
  for (std::size_t w = 0; w < words_; ++w)
    own[w] = row_bits_[row * words_ + w] & members_[l * words_ + w];
  once_.assign(parameters_ * words_, 0);
  twice_.assign(parameters_ * words_, 0);
  Words& scarce = scarce_;  // partners with a triple that is not yet held twice
  scarce = own;
  for_each_bit(own.data(), words_, [&](std::size_t x) {
    span_[index_.parameter(static_cast<Value>(x))] = {static_cast<std::uint16_t>(x / 64),
                                                      static_cast<std::uint16_t>(words_)};
  });
  Words& shared = shared_;
  const Word* with = rows_with(v);
  bool any = true;
  for (std::size_t rows = 0; rows < row_words_ && any; ++rows) {
    for (Word left = with[rows]; left != 0 && any; left &= left - 1) {
      const std::size_t r = rows * 64 + static_cast<std::size_t>(std::countr_zero(left));
      const Word* theirs = &row_bits_[r * words_];
      for (std::size_t w = 0; w < words_; ++w) shared[w] = own[w] & theirs[w];
      any = false;
      for (std::size_t block = 0; block < words_; ++block) {
        any = any || scarce[block] != 0;
        for (Word some = shared[block] & scarce[block]; some != 0; some &= some - 1) {
          const std::size_t x = block * 64 + static_cast<std::size_t>(std::countr_zero(some));
          const std::uint32_t q = index_.parameter(static_cast<Value>(x));
          Word* once = &once_[q * words_];
          Word* twice = &twice_[q * words_];
          WordSpan& span = span_[q];
          // Partners are taken with the larger one in the set of the smaller one.
          std::size_t first = words_;
          std::size_t last = 0;
          for (std::size_t w = span.first; w < span.end; ++w) {
            twice[w] |= once[w] & shared[w];
            once[w] |= shared[w];
            const Word after = w == block ? ~Word{1} << (x % 64) : ~Word{0};
            if ((own[w] & ~twice[w] & after) == 0) continue;
            first = std::min(first, w);
            last = w + 1;
          }
          work_ += 1;
          span = {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
          if (first >= last) clear_bit(scarce.data(), x);
        }
      }
    }
  }
  std::array<Value, 2> partners{};
  for_each_bit(scarce.data(), words_, [&](std::size_t x) {
    const std::uint32_t q = index_.parameter(static_cast<Value>(x));
    partners[0] = static_cast<Value>(x);
    ++work_;
    for (std::size_t w = span_[q].first; w < span_[q].end; ++w) {
      Word rest = own[w] & ~twice_[q * words_ + w];
      if (w == x / 64) rest &= ~Word{1} << (x % 64);
      for (; rest != 0; rest &= rest - 1) {
        const auto y =
            static_cast<Value>(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
        partners[1] = y;
        Holders h;
        if (test_bit(&once_[q * words_], y)) {
          h.count = 1;
          for (std::size_t i = 0; i < row_words_; ++i) {
            const Word all = rows_with(v)[i] & rows_with(partners[0])[i] & rows_with(y)[i];
            if (all == 0) continue;
            h.first = static_cast<std::uint32_t>(i * 64) +
                      static_cast<std::uint32_t>(std::countr_zero(all));
            break;
          }
        }
        visit(std::span<const Value>(partners), h);
      }
    }
  });
}

void LocalSearch::add_open(Value v, std::span<const Value> partners) {
  const auto slot = static_cast<std::uint32_t>(open_.size());
  Open open;
  open.size = static_cast<std::uint32_t>(partners.size() + 1);
  std::copy(partners.begin(), partners.end(), open.values.begin());
  open.values[partners.size()] = v;
  open_.push_back(open);
  for (std::uint32_t i = 0; i < open.size; ++i) open_with_[open.values[i]].push_back(slot);
}

void LocalSearch::drop_open(Value v, std::span<const Value> partners) {
  // The shortest list is searched; tuples are kept in no special order of their values.
  const auto* list = &open_with_[v];
  for (const Value x : partners) {
    if (open_with_[x].size() < list->size()) list = &open_with_[x];
  }
  for (const std::uint32_t slot : *list) {
    const Open open = open_[slot];
    const auto holds = [&](Value x) {
      return std::find(open.values.begin(), open.values.begin() + open.size, x) !=
             open.values.begin() + open.size;
    };
    const bool same = open.size == partners.size() + 1 && holds(v) &&
                      std::all_of(partners.begin(), partners.end(), holds);
    if (!same) continue;
    for (std::uint32_t i = 0; i < open.size; ++i) {
      auto& slots = open_with_[open.values[i]];
      *std::find(slots.begin(), slots.end(), slot) = slots.back();
      slots.pop_back();
    }
    const auto last = static_cast<std::uint32_t>(open_.size() - 1);
    if (slot != last) {
      const Open moved = open_[last];
      for (std::uint32_t i = 0; i < moved.size; ++i) {
        auto& slots = open_with_[moved.values[i]];
        *std::find(slots.begin(), slots.end(), last) = slot;
      }
      open_[slot] = moved;
    }
    open_.pop_back();
    return;
  }
}

void LocalSearch::take_out(std::uint32_t row, Value v) {
  clear_bit(rows_with(v), row);
  if (!test_bit(wanted_.data(), v)) return;
  clear_bit(&row_bits_[row * words_], v);
  const std::uint32_t p = index_.parameter(v);
  std::int32_t* loss = &loss_[static_cast<std::size_t>(row) * parameters_];
  for_each_scarce(row, v, [&](std::span<const Value> partners, const Holders& h) {
    if (h.count == 0) {
      for (const Value x : partners) --loss[index_.parameter(x)];
      add_open(v, partners);
    } else {
      std::int32_t* theirs = &loss_[static_cast<std::size_t>(h.first) * parameters_];
      for (const Value x : partners) ++theirs[index_.parameter(x)];
      ++theirs[p];
    }
  });
  loss[p] = 0;
}

void LocalSearch::put_in(std::uint32_t row, Value v) {
  const std::uint32_t p = index_.parameter(v);
  rows_[row][p] = v;
  if (test_bit(wanted_.data(), v)) {
    std::int32_t* loss = &loss_[static_cast<std::size_t>(row) * parameters_];
    for_each_scarce(row, v, [&](std::span<const Value> partners, const Holders& h) {
      if (h.count == 0) {
        for (const Value x : partners) ++loss[index_.parameter(x)];
        ++loss[p];
        drop_open(v, partners);
      } else {
        std::int32_t* theirs = &loss_[static_cast<std::size_t>(h.first) * parameters_];
        for (const Value x : partners) --theirs[index_.parameter(x)];
        --theirs[p];
      }
    });
  }
  set_bit(rows_with(v), row);
  if (test_bit(wanted_.data(), v)) set_bit(&row_bits_[row * words_], v);
}

void LocalSearch::change(std::uint32_t row, std::span<const Value> values) {
  // All leave before any comes: half-way rows hold tuples that are infeasible and must not be seen.
  for (const Value v : values) {
    const std::uint32_t p = index_.parameter(v);
    total_ += cost_of(v) - cost_of(rows_[row][p]);
    take_out(row, rows_[row][p]);
    rows_[row][p] = index_.values();
  }
  for (const Value v : values) {
    put_in(row, v);
    const std::size_t cell = static_cast<std::size_t>(row) * parameters_ + index_.parameter(v);
    changed_at_[cell] = step_;
    tabu_until_[cell] = step_ + 3 + random_.below(4);
  }
}

/// Open tuples that v would complete in the row.
std::int64_t LocalSearch::gain(std::uint32_t row, Value v) const {
  std::int64_t gain = 0;
  const std::vector<Value>& values = rows_[row];
  for (const std::uint32_t slot : open_with_[v]) {
    const Open& open = open_[slot];
    bool complete = true;
    for (std::uint32_t i = 0; i < open.size && complete; ++i) {
      const Value x = open.values[i];
      complete = x == v || values[index_.parameter(x)] == x;
    }
    gain += complete ? 1 : 0;
  }
  return gain;
}

void LocalSearch::remove_row() {
  // The row that alone holds the fewest tuples (each counted once a cell).
  std::uint32_t pick = frozen_;
  std::int64_t least = -1;
  for (std::uint32_t r = frozen_; r < count_; ++r) {
    std::int64_t sum = 0;
    for (std::uint32_t p = 0; p < parameters_; ++p) sum += loss_[r * parameters_ + p];
    if (least < 0 || sum < least) {
      least = sum;
      pick = r;
    }
  }
  for (std::uint32_t p = 0; p < parameters_; ++p) {
    total_ -= cost_of(rows_[pick][p]);
    take_out(pick, rows_[pick][p]);
    rows_[pick][p] = index_.values();  // wanted by nothing: a tuple opens once, with its first cell
  }
  const std::uint32_t last = --count_;
  if (pick != last) {
    for (const Value v : rows_[last]) {
      clear_bit(rows_with(v), last);
      set_bit(rows_with(v), pick);
    }
    rows_[pick] = rows_[last];
    std::copy_n(&row_bits_[last * words_], words_, &row_bits_[pick * words_]);
    for (std::uint32_t p = 0; p < parameters_; ++p) {
      loss_[pick * parameters_ + p] = loss_[last * parameters_ + p];
      tabu_until_[pick * parameters_ + p] = tabu_until_[last * parameters_ + p];
      changed_at_[pick * parameters_ + p] = changed_at_[last * parameters_ + p];
    }
  }
  rows_.pop_back();
}

/// The best change of one cell that closes one of a few open tuples. Counts how many changes the
/// constraints refused.
LocalSearch::Move LocalSearch::best_cell_move() {
  constexpr std::uint32_t kSampled = 4;
  Move best;
  const auto open_count = static_cast<std::uint32_t>(open_.size());
  const std::uint32_t tries = std::min(open_count, kSampled);
  const std::uint32_t start = random_.below(open_count);
  for (std::uint32_t i = 0; i < tries; ++i) {
    const Open& tuple = open_[(start + i) % open_count];
    for (std::uint32_t out = 0; out < tuple.size; ++out) {
      const Value v = tuple.values[out];
      const std::uint32_t p = index_.parameter(v);
      for (std::size_t w = 0; w < row_words_; ++w) {
        Word rows = ~Word{0};
        for (std::uint32_t k = 0; k < tuple.size; ++k) {
          if (k != out) rows &= rows_with(tuple.values[k])[w];
        }
        for (; rows != 0; rows &= rows - 1) {
          const auto r = static_cast<std::uint32_t>(w * 64) +
                         static_cast<std::uint32_t>(std::countr_zero(rows));
          if (r >= count_) break;
          if (r < frozen_) continue;
          const std::size_t cell = static_cast<std::size_t>(r) * parameters_ + p;
          ++work_;
          const auto most = static_cast<std::int64_t>(open_with_[v].size()) - loss_[cell];
          if (best.found && most < best.delta) continue;
          const std::int64_t delta = gain(r, v) - loss_[cell];
          if (!affordable(cost_of(v) - cost_of(rows_[r][p]))) continue;
          if (tabu_until_[cell] > step_ && delta < static_cast<std::int64_t>(open_count)) continue;
          if (best.found &&
              (delta < best.delta || (delta == best.delta && changed_at_[cell] >= best.age))) {
            continue;
          }
          if (!rules_.allows(rows_[r].data(), v)) {
            ++best.refused;
            continue;
          }
          best.found = true;
          best.row = r;
          best.value = v;
          best.delta = delta;
          best.age = changed_at_[cell];
        }
      }
    }
  }
  return best;
}

/// What replacing the row would newly cover less what it would open.
std::int64_t LocalSearch::delta_of(std::uint32_t row, const std::vector<Value>& values) {
  std::int64_t delta = 0;
  for (const Open& open : open_) {
    delta += std::all_of(open.values.begin(), open.values.begin() + open.size,
                         [&](Value v) { return values[index_.parameter(v)] == v; });
  }
  std::vector<Value> gone;
  for (std::uint32_t p = 0; p < parameters_; ++p) {
    if (rows_[row][p] == values[p]) continue;
    delta -= loss_[static_cast<std::size_t>(row) * parameters_ + p];
    gone.push_back(rows_[row][p]);
  }
  // A pair of two leaving values was counted with both. (Above pairs the error only makes such a
  // move look worse than it is.)
  for (std::size_t i = 0; i < gone.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (holders(rows_with(gone[i]), rows_with(gone[k]), row_words_).count == 1) ++delta;
    }
  }
  work_ += gone.size() * gone.size() / 2 + open_.size();
  return delta;
}

/// Looks for a row into which a whole open tuple can be put with what its constraints then ask for,
/// and does so unless that is worse than `least`.
bool LocalSearch::bend_row(std::int64_t least) {
  constexpr std::size_t kCompleted = 3;
  const Open tuple = open_[random_.below(static_cast<std::uint32_t>(open_.size()))];
  const std::span<const Value> values(tuple.values.data(), tuple.size);
  validity_.restart();
  if (!validity_.assume(values)) return false;
  // What propagation already forces says which rows come cheap.
  std::vector<std::pair<std::int64_t, std::uint32_t>> cheapest;
  for (std::uint32_t r = frozen_; r < count_; ++r) {
    const std::size_t cells = static_cast<std::size_t>(r) * parameters_;
    if (std::any_of(values.begin(), values.end(), [&](Value v) {
          return rows_[r][index_.parameter(v)] != v &&
                 tabu_until_[cells + index_.parameter(v)] > step_;
        })) {
      continue;
    }
    std::int64_t cost = random_.below(2);
    for (const Value v : validity_.row()) {
      const std::uint32_t p = index_.parameter(v);
      if (rows_[r][p] != v) cost += loss_[cells + p];
    }
    work_ += validity_.row().size() / 4 + 1;
    cheapest.emplace_back(cost, r);
  }
  const std::size_t count = std::min(kCompleted, cheapest.size());
  std::partial_sort(cheapest.begin(), cheapest.begin() + static_cast<std::ptrdiff_t>(count),
                    cheapest.end());
  std::vector<Value> best;
  std::uint32_t best_row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t r = cheapest[i].second;
    validity_.restart();
    if (!validity_.assume(values) || !validity_.complete(rows_[r].data())) continue;
    std::vector<Value> row = rows_[r];
    for (const Value v : validity_.row()) row[index_.parameter(v)] = v;
    work_ += parameters_;
    double more = 0;
    for (std::uint32_t p = 0; p < parameters_; ++p) more += cost_of(row[p]) - cost_of(rows_[r][p]);
    if (!affordable(more)) continue;
    const std::int64_t delta = delta_of(r, row);
    if (delta > least || (delta == least && best.empty())) {
      least = delta;
      best = std::move(row);
      best_row = r;
    }
  }
  validity_.restart();
  if (best.empty()) return false;
  std::erase_if(best, [&](Value v) { return rows_[best_row][index_.parameter(v)] == v; });
  change(best_row, best);
  return true;
}

void LocalSearch::step() {
  constexpr std::int64_t kAnything = -(std::int64_t{1} << 40);
  ++step_;
  if (random_.below(1000) == 0 && bend_row(kAnything)) return;
  const Move cell = best_cell_move();
  const bool constrained = cell.refused > 0 && cell.delta < 0;
  if (!cell.found || constrained) {
    if (bend_row(cell.found ? cell.delta : kAnything)) return;
  }
  if (cell.found) change(cell.row, std::span(&cell.value, 1));
}

void LocalSearch::run(std::size_t enough, const std::function<bool()>& stop) {
  while (!stop()) {
    for (int i = 0; i < 16; ++i) {
      if (open_.empty()) {
        keep_if_better();
        if (count_ <= std::max<std::size_t>(enough, frozen_)) return;
        remove_row();
        continue;
      }
      if (count_ == frozen_) return;
      step();
    }
  }
}

void LocalSearch::settle(const std::function<bool(Value w, Value v)>& better) {
  for (std::uint32_t r = frozen_; r < count_; ++r) {
    for (std::uint32_t p = 0; p < parameters_; ++p) {
      if (loss_[static_cast<std::size_t>(r) * parameters_ + p] != 0) continue;
      Value pick = rows_[r][p];
      for (Value w = index_.first(p); w < index_.first(p) + index_.level_count(p); ++w) {
        if (better(w, pick) && rules_.allows(rows_[r].data(), w)) pick = w;
      }
      if (pick != rows_[r][p]) change(r, std::span(&pick, 1));
    }
  }
  best_ = rows_;
}

}  // namespace greynic::testgen
