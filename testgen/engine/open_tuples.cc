#include "engine/open_tuples.h"

#include <algorithm>

namespace greynic::testgen {
namespace {

/// Past the last value that takes part in a tuple.
std::size_t end_of_values(const ValueIndex& index, std::span<const std::uint32_t> parameters) {
  if (parameters.empty()) return 0;
  return index.first(parameters.back()) + index.level_count(parameters.back());
}

}  // namespace

OpenTuples::OpenTuples(const ValueIndex& index, int strength,
                       std::span<const std::uint32_t> parameters, const Words& compatible,
                       const std::function<bool(double share)>& go_on)
    : strength_(strength),
      words_((end_of_values(index, parameters) + 63) / 64),
      wanted_(index.words(), 0),
      bits_(index, end_of_values(index, parameters), static_cast<std::size_t>(strength - 1)) {
  const std::size_t all_words = index.words();
  std::vector<Value> values;
  for (const std::uint32_t p : parameters) {
    for (Value v = index.first(p); v < index.first(p) + index.level_count(p); ++v) {
      if (!test_bit(&compatible[v * all_words], v)) continue;
      values.push_back(v);
      set_bit(wanted_.data(), v);
    }
  }
  const std::size_t prefix_size = static_cast<std::size_t>(strength - 1);
  open_with_.assign(index.values(), 0);
  pending_.assign(index.values(), 0);
  std::uint64_t bits_set = 0;
  std::size_t visited = 0;
  bool going_on = true;
  bits_.for_each_prefix(values, [&](std::span<const Value> prefix, std::size_t r) {
    constexpr std::size_t kBetweenQuestions = 1 << 14;
    if (++visited % kBetweenQuestions == 0 && going_on) {
      going_on = go_on(static_cast<double>(visited) / static_cast<double>(bits_.prefixes()));
    }
    if (!going_on) return;
    Word* bits = bits_.at(r);
    for (std::size_t i = 0; i < prefix.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!test_bit(&compatible[prefix[i] * all_words], prefix[j])) return;
      }
    }
    std::copy_n(wanted_.begin(), words_, bits);
    for (const Value v : prefix) {
      for (std::size_t w = 0; w < words_; ++w) bits[w] &= compatible[v * all_words + w];
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

std::uint64_t OpenTuples::cover(std::span<const Value> row) {
  std::vector<Value> members;
  Words held(words_, 0);
  for (const Value v : row) {
    if (!concerns(v)) continue;
    members.push_back(v);
    set_bit(held.data(), v);
  }
  const std::size_t prefix_size = bits_.prefix_size();
  std::uint64_t cleared = 0;
  bits_.for_each_prefix(members, [&](std::span<const Value> prefix, std::size_t r) {
    Word* bits = bits_.at(r);
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
  return test_bit(bits_.at(bits_.rank(tuple.first(tuple.size() - 1))), tuple.back());
}

void OpenTuples::remove(std::span<const Value> tuple) {
  if (!is_open(tuple)) return;
  std::vector<Value> prefix(tuple.begin() + 1, tuple.end());
  for (std::size_t out = 0; out < tuple.size(); ++out) {
    clear_bit(bits_.at(bits_.rank(prefix)), tuple[out]);
    if (out < prefix.size()) prefix[out] = tuple[out];
  }
  for (const Value v : tuple) --open_with_[v];
  --open_;
}

void OpenTuples::add_gain(Value joined, const Words& held, std::span<const Value> list,
                          const Words& candidates, std::vector<std::int32_t>& gain) const {
  if (!concerns(joined)) return;
  if (strength_ == 2) {
    for_each_bit(bits_.at(joined), words_, [&](std::size_t v) { ++gain[v]; });
    return;
  }
  if (strength_ == 3) {
    for_each_bit(candidates.data(), words_, [&](std::size_t at) {
      const auto v = static_cast<Value>(at);
      if (open_with_[v] == 0) return;
      const std::size_t rank = bits_.rank_of(1, std::max(v, joined)) + std::min(v, joined);
      gain[v] += count_common(bits_.at(rank), held.data(), words_);
    });
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
    for_each_bit(bits_.at(bits_.rank(prefix)), words_, [&](std::size_t v) { ++gain[v]; });
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
  const auto from = static_cast<std::size_t>(static_cast<double>(bits_.prefixes()) *
                                             (static_cast<double>(start) / 0x1p32));
  for (std::size_t i = 0; i < bits_.prefixes(); ++i) {
    const std::size_t r = from + i < bits_.prefixes() ? from + i : from + i - bits_.prefixes();
    const Word* bits = bits_.at(r);
    for (std::size_t w = 0; w < words_; ++w) {
      if (bits[w] == 0) continue;
      std::vector<Value> tuple = bits_.unrank(r);
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
