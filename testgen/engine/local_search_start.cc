/// Setting a local search up: which rows hold each value, and what each cell alone covers.

#include <algorithm>

#include "engine/local_search.h"

namespace greynic::testgen {
namespace {

/// Of a set of values that take part in tuples: helpers, which come last, are not among them.
std::size_t words_of(const ValueIndex& index, const Words& wanted) {
  std::size_t words = index.words();
  while (words > 1 && wanted[words - 1] == 0) --words;
  return words;
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
      words_(words_of(index, wanted)),
      row_words_((rows.size() + 63) / 64),
      rows_(std::move(rows)),
      best_(rows_),
      rows_with_(index.values() * row_words_, 0),
      loss_(rows_.size() * parameters_, 0),
      tabu_until_(rows_.size() * parameters_, 0),
      changed_at_(rows_.size() * parameters_, 0),
      open_with_(index.values()) {
  wanted_.push_back(0);
  row_bits_.assign(rows_.size() * words_, 0);
  shared_.assign(words_, 0);
  own_.assign(words_, 0);
  scarce_.assign(words_, 0);
  span_.resize(parameters_);
  for (const Layer& layer : layers_) {
    in_layer_.emplace_back(parameters_, 0);
    Words members(words_, 0);
    for (const std::uint32_t p : layer.parameters) {
      in_layer_.back()[p] = 1;
      for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
        if (test_bit(wanted_.data(), v)) set_bit(members.data(), v);
      }
    }
    members_.insert(members_.end(), members.begin(), members.end());
  }
  for (std::uint32_t r = 0; r < count_; ++r) {
    for (const Value v : rows_[r]) {
      set_bit(rows_with(v), r);
      if (test_bit(wanted_.data(), v)) set_bit(&row_bits_[r * words_], v);
    }
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) count_losses(l);
}

/// Tuples that one row alone holds, counted for each of their cells. For each prefix of a tuple
/// that some row holds, the values of its rows are summed up, one and two or more apart.
void LocalSearch::count_losses(std::size_t l) {
  const auto prefix_size = static_cast<std::size_t>(layers_[l].strength - 1);
  const Word* members = &members_[l * words_];
  std::vector<Value> prefix;
  Words held((prefix_size + 1) * row_words_, 0);
  for (std::uint32_t r = 0; r < count_; ++r) set_bit(held.data(), r);
  Words once(words_);
  Words twice(words_);
  const auto count = [&](const Word* rows) {
    const std::size_t first = prefix.empty() ? 0 : prefix.back() / 64;
    std::fill(once.begin(), once.end(), 0);
    std::fill(twice.begin(), twice.end(), 0);
    for_each_bit(rows, row_words_, [&](std::size_t r) {
      const Word* row = &row_bits_[r * words_];
      for (std::size_t w = first; w < words_; ++w) {
        twice[w] |= once[w] & row[w];
        once[w] |= row[w];
      }
    });
    for (std::size_t w = first; w < words_; ++w) {
      Word alone = once[w] & ~twice[w] & members[w];
      // The last value of the prefix and those before it make the same tuple, or none.
      if (!prefix.empty() && w == first) alone &= ~Word{1} << (prefix.back() % 64);
      for (; alone != 0; alone &= alone - 1) {
        const auto v =
            static_cast<Value>(w * 64 + static_cast<std::size_t>(std::countr_zero(alone)));
        const Holders only = holders(rows_with(v), rows, row_words_);
        std::int32_t* loss = &loss_[static_cast<std::size_t>(only.first) * parameters_];
        ++loss[index_.parameter(v)];
        for (const Value x : prefix) ++loss[index_.parameter(x)];
      }
    }
  };
  const auto descend = [&](const auto& self, Value from) -> void {
    const std::size_t depth = prefix.size();
    const Word* rows = &held[depth * row_words_];
    if (depth == prefix_size) return count(rows);
    Word* both = &held[(depth + 1) * row_words_];
    const auto end = static_cast<Value>(std::min<std::size_t>(words_ * 64, index_.values()));
    for (Value v = from; v < end; ++v) {
      if (!test_bit(members, v)) continue;
      Word any = 0;
      for (std::size_t w = 0; w < row_words_; ++w) any |= both[w] = rows[w] & rows_with(v)[w];
      if (any == 0) continue;
      prefix.push_back(v);
      self(self, v + 1);
      prefix.pop_back();
    }
  };
  descend(descend, 0);
}

}  // namespace greynic::testgen
