#include "local_search.h"

#include <algorithm>

namespace greynic::testgen {
namespace {

/// Rows that hold a tuple are only ever told apart as none, one, or more.
struct Holders {
  int count = 0;
  std::uint32_t first = 0;
};

Holders holders(const Word* a, const Word* b, std::size_t words) {
  Holders h;
  for (std::size_t i = 0; i < words; ++i) {
    const Word both = a[i] & b[i];
    if (both == 0) continue;
    if (h.count == 0)
      h.first =
          static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(both));
    h.count += (both & (both - 1)) != 0 ? 2 : 1;
    if (h.count > 1) return h;
  }
  return h;
}

}  // namespace

LocalSearch::LocalSearch(const ValueIndex& index, const std::vector<Layer>& layers,
                         const Words& wanted, const RowRules& rules, Validity& validity,
                         std::vector<std::vector<Value>> rows, std::size_t frozen,
                         std::uint64_t seed)
    : index_(index),
      layers_(layers),
      wanted_(wanted),
      rules_(rules),
      validity_(validity),
      random_(seed),
      parameters_(index.parameters()),
      count_(static_cast<std::uint32_t>(rows.size())),
      frozen_(static_cast<std::uint32_t>(frozen)),
      row_words_((rows.size() + 63) / 64),
      rows_(std::move(rows)),
      best_(rows_),
      rows_with_(index.values() * row_words_, 0),
      loss_(rows_.size() * parameters_, 0),
      tabu_until_(rows_.size() * parameters_, 0),
      changed_at_(rows_.size() * parameters_, 0),
      open_with_(index.values()) {
  wanted_.push_back(0);
  for (const Layer& layer : layers_) {
    in_layer_.emplace_back(parameters_, 0);
    for (const std::uint32_t p : layer.parameters) in_layer_.back()[p] = 1;
  }
  for (std::uint32_t r = 0; r < count_; ++r) {
    for (const Value v : rows_[r]) set_bit(rows_with(v), r);
  }
  // Tuples that one row alone holds, counted once for each of their cells.
  for (std::uint32_t r = 0; r < count_; ++r) {
    for (const Value v : rows_[r]) {
      if (!test_bit(wanted_.data(), v)) continue;
      for_each_partner_set(r, v, [&](const Word* others, std::span<const Value>) {
        if (holders(others, rows_with(v), row_words_).count == 1) {
          ++loss_[r * parameters_ + index_.parameter(v)];
        }
      });
    }
  }
  work_ = 0;
}

/// Visits every set of partners with which v forms a tuple in the row: the rows that hold all of
/// them, and the partners.
template <typename Visit>
void LocalSearch::for_each_partner_set(std::uint32_t row, Value v, Visit&& visit) {
  const std::uint32_t p = index_.parameter(v);
  const std::vector<Value>& values = rows_[row];
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (!in_layer_[l][p]) continue;
    const std::size_t partners = static_cast<std::size_t>(layers_[l].strength) - 1;
    const auto& members = layers_[l].parameters;
    std::array<Value, 5> chosen{};
    if (partners == 0) {
      scratch_.assign(row_words_, ~Word{0});
      visit(scratch_.data(), std::span<const Value>());
      continue;
    }
    if (partners == 1) {
      for (const std::uint32_t q : members) {
        if (q == p || !test_bit(wanted_.data(), values[q])) continue;
        chosen[0] = values[q];
        visit(static_cast<const Word*>(rows_with(chosen[0])),
              std::span<const Value>(chosen.data(), 1));
      }
      work_ += members.size();
      continue;
    }
    scratch_.resize(partners * row_words_);
    const auto descend = [&](const auto& self, std::size_t depth, std::size_t from,
                             const Word* held) -> void {
      for (std::size_t i = from; i < members.size(); ++i) {
        const std::uint32_t q = members[i];
        if (q == p || !test_bit(wanted_.data(), values[q])) continue;
        chosen[depth] = values[q];
        const Word* mine = rows_with(values[q]);
        if (held != nullptr) {
          Word* both = &scratch_[depth * row_words_];
          for (std::size_t w = 0; w < row_words_; ++w) both[w] = mine[w] & held[w];
          mine = both;
        }
        if (depth + 1 == partners) {
          visit(mine, std::span<const Value>(chosen.data(), partners));
        } else {
          self(self, depth + 1, i + 1, mine);
        }
      }
      work_ += members.size() - std::min(from, members.size());
    };
    descend(descend, 0, 0, nullptr);
  }
}

void LocalSearch::add_open(std::span<const Value> tuple) {
  const auto slot = static_cast<std::uint32_t>(open_.size());
  Open open;
  open.size = static_cast<std::uint32_t>(tuple.size());
  std::copy(tuple.begin(), tuple.end(), open.values.begin());
  open_.push_back(open);
  for (const Value v : tuple) open_with_[v].push_back(slot);
}

void LocalSearch::drop_open(std::span<const Value> tuple) {
  // The shortest list is searched; tuples are kept in no special order of their values.
  const auto* list = &open_with_[tuple[0]];
  for (const Value v : tuple) {
    if (open_with_[v].size() < list->size()) list = &open_with_[v];
  }
  for (const std::uint32_t slot : *list) {
    const Open& open = open_[slot];
    if (open.size != tuple.size()) continue;
    const bool same = std::all_of(tuple.begin(), tuple.end(), [&](Value v) {
      return std::find(open.values.begin(), open.values.begin() + open.size, v) !=
             open.values.begin() + open.size;
    });
    if (!same) continue;
    for (const Value v : tuple) {
      auto& slots = open_with_[v];
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
  const std::uint32_t p = index_.parameter(v);
  std::int32_t* loss = &loss_[row * parameters_];
  for_each_partner_set(row, v, [&](const Word* others, std::span<const Value> partners) {
    const Holders h = holders(others, rows_with(v), row_words_);
    if (h.count > 1) return;
    if (h.count == 0) {
      for (const Value x : partners) --loss[index_.parameter(x)];
      std::array<Value, 6> tuple{};
      std::copy(partners.begin(), partners.end(), tuple.begin());
      tuple[partners.size()] = v;
      add_open(std::span<const Value>(tuple.data(), partners.size() + 1));
    } else {
      std::int32_t* theirs = &loss_[h.first * parameters_];
      for (const Value x : partners) ++theirs[index_.parameter(x)];
      ++theirs[p];
    }
  });
  loss[p] = 0;
}

void LocalSearch::put_in(std::uint32_t row, Value v) {
  rows_[row][index_.parameter(v)] = v;
  if (test_bit(wanted_.data(), v)) {
    const std::uint32_t p = index_.parameter(v);
    std::int32_t* loss = &loss_[row * parameters_];
    for_each_partner_set(row, v, [&](const Word* others, std::span<const Value> partners) {
      const Holders h = holders(others, rows_with(v), row_words_);
      if (h.count > 1) return;
      if (h.count == 0) {
        for (const Value x : partners) ++loss[index_.parameter(x)];
        ++loss[p];
        std::array<Value, 6> tuple{};
        std::copy(partners.begin(), partners.end(), tuple.begin());
        tuple[partners.size()] = v;
        drop_open(std::span<const Value>(tuple.data(), partners.size() + 1));
      } else {
        std::int32_t* theirs = &loss_[h.first * parameters_];
        for (const Value x : partners) --theirs[index_.parameter(x)];
        --theirs[p];
      }
    });
  }
  set_bit(rows_with(v), row);
}

void LocalSearch::change(std::uint32_t row, Value v) {
  const std::uint32_t p = index_.parameter(v);
  if (rows_[row][p] == v) return;
  take_out(row, rows_[row][p]);
  put_in(row, v);
  const std::size_t cell = static_cast<std::size_t>(row) * parameters_ + p;
  changed_at_[cell] = step_;
  tabu_until_[cell] = step_ + 3 + random_.below(4);
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
    for (std::uint32_t p = 0; p < parameters_; ++p) {
      loss_[pick * parameters_ + p] = loss_[last * parameters_ + p];
      tabu_until_[pick * parameters_ + p] = tabu_until_[last * parameters_ + p];
      changed_at_[pick * parameters_ + p] = changed_at_[last * parameters_ + p];
    }
  }
  rows_.pop_back();
}

/// The best change of one cell that closes one of a few open tuples; false when none is allowed.
bool LocalSearch::cell_move() {
  constexpr std::uint32_t kSampled = 4;
  Move best;
  bool found = false;
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
        if (tuple.size == 1 && w == row_words_ - 1 && count_ % 64 != 0) {
          rows &= (Word{1} << (count_ % 64)) - 1;
        }
        for (; rows != 0; rows &= rows - 1) {
          const auto r = static_cast<std::uint32_t>(w * 64) +
                         static_cast<std::uint32_t>(std::countr_zero(rows));
          if (r < frozen_ || r >= count_) continue;
          const std::size_t cell = static_cast<std::size_t>(r) * parameters_ + p;
          ++work_;
          if (found && -loss_[cell] + static_cast<std::int64_t>(open_with_[v].size()) < best.delta)
            continue;
          const std::int64_t delta = gain(r, v) - loss_[cell];
          if (tabu_until_[cell] > step_ && delta < static_cast<std::int64_t>(open_.size()))
            continue;
          if (found &&
              (delta < best.delta || (delta == best.delta && changed_at_[cell] >= best.age))) {
            continue;
          }
          if (!rules_.allows(rows_[r].data(), v)) continue;
          found = true;
          best = {r, v, delta, changed_at_[cell]};
        }
      }
    }
  }
  if (!found) return false;
  change(best.row, best.value);
  return true;
}

/// Puts a whole open tuple into a row, and whatever else its constraints then ask for.
void LocalSearch::bend_row() {
  constexpr std::uint32_t kTried = 4;
  const Open tuple = open_[random_.below(static_cast<std::uint32_t>(open_.size()))];
  const std::span<const Value> values(tuple.values.data(), tuple.size);
  std::vector<Value> best;
  std::uint32_t best_row = 0;
  std::int64_t best_cost = 0;
  for (std::uint32_t i = 0; i < kTried; ++i) {
    const std::uint32_t r = frozen_ + random_.below(count_ - frozen_);
    validity_.restart();
    if (!validity_.assume(values) || !validity_.complete(rows_[r].data())) continue;
    std::vector<Value> row = rows_[r];
    for (const Value v : validity_.row()) row[index_.parameter(v)] = v;
    for (const Value v : values) row[index_.parameter(v)] = v;
    std::int64_t cost = 0;
    for (std::uint32_t p = 0; p < parameters_; ++p) {
      if (row[p] != rows_[r][p]) cost += loss_[r * parameters_ + p];
    }
    work_ += parameters_;
    if (best.empty() || cost < best_cost) {
      best = std::move(row);
      best_cost = cost;
      best_row = r;
    }
  }
  for (const Value v : best) change(best_row, v);
}

void LocalSearch::run(std::size_t enough, const std::function<bool()>& stop) {
  while (!stop()) {
    for (int i = 0; i < 16; ++i) {
      if (open_.empty()) {
        if (count_ < best_.size()) best_ = rows_;
        if (count_ <= std::max<std::size_t>(enough, frozen_)) return;
        remove_row();
        continue;
      }
      if (count_ == frozen_) return;
      ++step_;
      if (random_.below(1000) == 0 || !cell_move()) bend_row();
    }
  }
}

}  // namespace greynic::testgen
