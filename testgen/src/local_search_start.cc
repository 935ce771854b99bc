/// Setting a local search up: which rows hold each value, and what each cell alone covers.

#include <algorithm>

#include "local_search.h"
#include "prefix_bits.h"

namespace greynic::testgen {

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
      words_(index.words()),
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
      set_bit(&row_bits_[r * words_], v);
    }
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) count_losses(l);
}

/// Tuples that one row alone holds, counted for each of their cells.
void LocalSearch::count_losses(std::size_t l) {
  const auto prefix_size = static_cast<std::size_t>(layers_[l].strength - 1);
  PrefixBits once(index_, prefix_size);
  PrefixBits twice(index_, prefix_size);
  std::vector<Value> members;
  Words held(words_, 0);
  const auto gather = [&](std::uint32_t r) {
    members.clear();
    std::fill(held.begin(), held.end(), 0);
    for (const std::uint32_t p : layers_[l].parameters) {
      const Value v = rows_[r][p];
      if (!test_bit(wanted_.data(), v)) continue;
      members.push_back(v);
      set_bit(held.data(), v);
    }
  };
  for (std::uint32_t r = 0; r < count_; ++r) {
    gather(r);
    once.for_each_prefix(members, [&](std::span<const Value>, std::size_t rank) {
      Word* first = once.at(rank);
      Word* more = twice.at(rank);
      for (std::size_t w = 0; w < words_; ++w) {
        more[w] |= first[w] & held[w];
        first[w] |= held[w];
      }
    });
  }
  for (std::uint32_t r = 0; r < count_; ++r) {
    gather(r);
    std::int32_t* loss = &loss_[static_cast<std::size_t>(r) * parameters_];
    once.for_each_prefix(members, [&](std::span<const Value> prefix, std::size_t rank) {
      const Word* more = twice.at(rank);
      for (std::size_t w = 0; w < words_; ++w) {
        for (Word alone = held[w] & ~more[w]; alone != 0; alone &= alone - 1) {
          const auto v =
              static_cast<Value>(w * 64 + static_cast<std::size_t>(std::countr_zero(alone)));
          // A prefix stands in every set of its own values, which is no tuple.
          if (std::find(prefix.begin(), prefix.end(), v) == prefix.end())
            ++loss[index_.parameter(v)];
        }
      }
    });
  }
}

}  // namespace greynic::testgen
