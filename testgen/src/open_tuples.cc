#include "open_tuples.h"

#include <algorithm>

namespace greynic::testgen {

double OpenTuples::bytes_needed(const ValueIndex& index, int strength) {
  double prefixes = 1;
  for (int i = 0; i < strength - 1; ++i) {
    prefixes *= std::max(0.0, static_cast<double>(index.values()) - i) / (i + 1);
  }
  return prefixes * static_cast<double>(index.words()) * 8.0;
}

OpenTuples::OpenTuples(const ValueIndex& index, int strength,
                       std::span<const std::uint32_t> parameters, const Words& compatible)
    : index_(index), strength_(strength), words_(index.words()), wanted_(index.words(), 0) {
  std::vector<Value> values;
  for (const std::uint32_t p : parameters) {
    for (Value v = index.first(p); v < index.first(p) + index.level_count(p); ++v) {
      if (!test_bit(&compatible[v * words_], v)) continue;
      values.push_back(v);
      set_bit(wanted_.data(), v);
    }
  }
  const std::size_t prefix_size = static_cast<std::size_t>(strength - 1);
  choose_.assign(prefix_size, std::vector<std::size_t>(index.values() + 1, 0));
  prefixes_ = 1;
  for (std::size_t i = 0; i < prefix_size; ++i) {
    for (std::size_t v = 1; v <= index.values(); ++v) {
      choose_[i][v] = choose_[i][v - 1] + (i == 0 ? 1 : choose_[i - 1][v - 1]);
    }
    prefixes_ = choose_[i][index.values()];
  }
  bits_.assign(prefixes_ * words_, 0);
  open_with_.assign(index.values(), 0);
  pending_.assign(index.values(), 0);
  std::uint64_t bits_set = 0;
  for_each_prefix(values, prefix_size, [&](std::span<const Value> prefix, std::size_t r) {
    Word* bits = &bits_[r * words_];
    for (std::size_t i = 0; i < prefix.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!test_bit(&compatible[prefix[i] * words_], prefix[j])) return;
      }
    }
    std::copy(wanted_.begin(), wanted_.end(), bits);
    for (const Value v : prefix) {
      for (std::size_t w = 0; w < words_; ++w) bits[w] &= compatible[v * words_ + w];
      clear_bit(bits, v);
    }
    const auto count = static_cast<std::uint64_t>(count_common(bits, bits, words_));
    bits_set += count;
    for (const Value v : prefix) open_with_[v] += count;
    if (prefix.empty()) for_each_bit(bits, words_, [&](std::size_t v) { open_with_[v] = 1; });
  });
  open_ = bits_set / static_cast<std::uint64_t>(strength);
  if (prefix_size > 0) {
    for (auto& count : open_with_) count /= prefix_size;
  }
}

/// Visits each choice of `size` ascending values of different parameters, with its rank.
template <typename Visit>
void OpenTuples::for_each_prefix(std::span<const Value> from, std::size_t size,
                                 Visit&& visit) const {
  std::vector<std::size_t> at(size);
  std::vector<Value> prefix(size);
  std::vector<std::size_t> ranks(size + 1, 0);
  if (size == 0) {
    visit(std::span<const Value>(prefix), std::size_t{0});
    return;
  }
  std::size_t depth = 0;
  at[0] = 0;
  while (true) {
    if (at[depth] >= from.size()) {
      if (depth == 0) return;
      ++at[--depth];
      continue;
    }
    const Value v = from[at[depth]];
    if (depth > 0 && index_.parameter(v) == index_.parameter(prefix[depth - 1])) {
      ++at[depth];
      continue;
    }
    prefix[depth] = v;
    ranks[depth + 1] = ranks[depth] + choose_[depth][v];
    if (depth + 1 == size) {
      visit(std::span<const Value>(prefix), ranks[size]);
      ++at[depth];
    } else {
      at[depth + 1] = at[depth] + 1;
      ++depth;
    }
  }
}

std::vector<Value> OpenTuples::unrank(std::size_t rank) const {
  std::vector<Value> prefix(choose_.size());
  for (std::size_t i = choose_.size(); i-- > 0;) {
    const auto& row = choose_[i];
    const auto it = std::upper_bound(row.begin(), row.end(), rank);
    prefix[i] = static_cast<Value>(it - row.begin() - 1);
    rank -= row[prefix[i]];
  }
  return prefix;
}

std::uint64_t OpenTuples::cover(std::span<const Value> row) {
  std::vector<Value> members;
  Words held(words_, 0);
  for (const Value v : row) {
    if (!concerns(v)) continue;
    members.push_back(v);
    set_bit(held.data(), v);
  }
  const std::size_t prefix_size = choose_.size();
  std::uint64_t cleared = 0;
  for_each_prefix(members, prefix_size, [&](std::span<const Value> prefix, std::size_t r) {
    Word* bits = &bits_[r * words_];
    std::uint64_t here = 0;
    for (std::size_t w = 0; w < words_; ++w) {
      const Word hit = bits[w] & held[w];
      here += static_cast<std::uint64_t>(std::popcount(hit));
      if (prefix_size == 0) for_each_bit(&hit, 1, [&](std::size_t b) { --open_with_[w * 64 + b]; });
      bits[w] &= ~held[w];
    }
    cleared += here;
    // A tuple shows under each of its t prefixes, so each of its values is counted t - 1 times.
    if (here != 0) {
      for (const Value v : prefix) pending_[v] += here;
    }
  });
  for (const Value v : members) {
    if (prefix_size > 0) open_with_[v] -= pending_[v] / prefix_size;
    pending_[v] = 0;
  }
  cleared /= static_cast<std::uint64_t>(strength_);
  open_ -= cleared;
  return cleared;
}

bool OpenTuples::is_open(std::span<const Value> tuple) const {
  return test_bit(with_prefix(rank(tuple.first(tuple.size() - 1))), tuple.back());
}

void OpenTuples::remove(std::span<const Value> tuple) {
  if (!is_open(tuple)) return;
  std::vector<Value> prefix(tuple.begin() + 1, tuple.end());
  for (std::size_t out = 0; out < tuple.size(); ++out) {
    clear_bit(&bits_[rank(prefix) * words_], tuple[out]);
    if (out < prefix.size()) prefix[out] = tuple[out];
  }
  for (const Value v : tuple) --open_with_[v];
  --open_;
}

void OpenTuples::add_gain(Value joined, const Words& held, std::span<const Value> list,
                          std::vector<std::int32_t>& gain) const {
  if (!concerns(joined)) return;
  if (strength_ == 2) {
    for_each_bit(with_prefix(joined), words_, [&](std::size_t v) { ++gain[v]; });
    return;
  }
  if (strength_ == 3) {
    // Values of parameters that have their level already gain too; nobody reads those.
    const auto& pairs = choose_[1];
    for (Value v = 0; v < joined; ++v) {
      if (open_with_[v] != 0) {
        gain[v] += count_common(with_prefix(pairs[joined] + v), held.data(), words_);
      }
    }
    for (Value v = joined + 1; v < index_.values(); ++v) {
      if (open_with_[v] != 0) {
        gain[v] += count_common(with_prefix(pairs[v] + joined), held.data(), words_);
      }
    }
    return;
  }
  if (strength_ == 1) return;
  // Every prefix made of the new value and t - 2 held ones.
  const std::size_t others = static_cast<std::size_t>(strength_) - 2;
  std::vector<Value> prefix;
  std::vector<Value> members;
  for (const Value v : list) {
    if (concerns(v) && open_with_[v] != 0) members.push_back(v);
  }
  if (members.size() < others) return;
  std::vector<std::size_t> at(others);
  for (std::size_t i = 0; i < others; ++i) at[i] = i;
  while (true) {
    prefix.clear();
    bool placed = false;
    for (const std::size_t i : at) {
      if (!placed && members[i] > joined) {
        prefix.push_back(joined);
        placed = true;
      }
      prefix.push_back(members[i]);
    }
    if (!placed) prefix.push_back(joined);
    for_each_bit(with_prefix(rank(prefix)), words_, [&](std::size_t v) { ++gain[v]; });
    std::size_t i = others;
    while (i > 0 && at[i - 1] == members.size() - others + i - 1) --i;
    if (i == 0) return;
    ++at[i - 1];
    for (std::size_t j = i; j < others; ++j) at[j] = at[j - 1] + 1;
  }
}

std::vector<Value> OpenTuples::any_open(std::uint32_t start) const {
  if (open_ == 0) return {};
  // Prefixes are counted in fewer than 2^53, so the product is exact enough in double.
  const auto from = static_cast<std::size_t>(static_cast<double>(prefixes_) *
                                             (static_cast<double>(start) / 0x1p32));
  for (std::size_t i = 0; i < prefixes_; ++i) {
    const std::size_t r = from + i < prefixes_ ? from + i : from + i - prefixes_;
    const Word* bits = with_prefix(r);
    for (std::size_t w = 0; w < words_; ++w) {
      if (bits[w] == 0) continue;
      std::vector<Value> tuple = unrank(r);
      const std::uint32_t skip = start % static_cast<std::uint32_t>(std::popcount(bits[w]));
      Word word = bits[w];
      for (std::uint32_t s = 0; s < skip; ++s) word &= word - 1;
      tuple.push_back(
          static_cast<Value>(w * 64 + static_cast<std::size_t>(std::countr_zero(word))));
      std::sort(tuple.begin(), tuple.end());
      return tuple;
    }
  }
  return {};
}

}  // namespace greynic::testgen
