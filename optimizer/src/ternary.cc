#include "ternary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>

namespace greynic::optimizer {
namespace {

std::size_t bit_count(U128 bits) {
  const auto low = static_cast<std::size_t>(std::popcount(static_cast<Word>(bits)));
  return low + static_cast<std::size_t>(std::popcount(static_cast<Word>(bits >> 64)));
}

}  // namespace

Columns::Columns(const Mask& all) {
  std::vector<FieldColumns> fields;
  for (const FieldMask& entry : all.fields()) {
    unsigned lowest = 0;
    while ((entry.bits >> lowest & 1) == 0) ++lowest;
    const U128 shifted = entry.bits >> lowest;
    fields.push_back({entry.field, entry.bits, count_, lowest, (shifted & (shifted + 1)) == 0});
    count_ += bit_count(entry.bits);
  }
  fields_ = std::make_shared<const std::vector<FieldColumns>>(std::move(fields));
  words_ = std::max<std::size_t>(1, (count_ + 63) / 64);
}

void Columns::scatter(const FieldColumns& place, U128 bits, Word* out) const {
  std::size_t column = place.first;
  if (place.run) {
    U128 left = (bits & place.bits) >> place.lowest;
    for (; left != 0; left >>= 64 - column % 64, column += 64 - column % 64) {
      out[column / 64] |= static_cast<Word>(left) << column % 64;
    }
    return;
  }
  for (U128 rest = place.bits; rest != 0; rest &= rest - 1, ++column) {
    const U128 lowest = rest & (~rest + 1);
    if ((bits & lowest) != 0) out[column / 64] |= Word{1} << column % 64;
  }
}

U128 Columns::gather(const FieldColumns& place, const Word* row) const {
  U128 bits = 0;
  std::size_t column = place.first;
  if (place.run) {
    const std::size_t end = column + bit_count(place.bits);
    for (std::size_t done = 0; column < end;) {
      bits |= static_cast<U128>(row[column / 64] >> column % 64) << done;
      done += 64 - column % 64;
      column += 64 - column % 64;
    }
    return bits << place.lowest & place.bits;
  }
  for (U128 rest = place.bits; rest != 0; rest &= rest - 1, ++column) {
    if ((row[column / 64] >> column % 64 & 1) != 0) bits |= rest & (~rest + 1);
  }
  return bits;
}

void Columns::pack(const Match& match, Word* value, Word* mask) const {
  auto place = fields_->begin();
  for (const FieldMatch& entry : match.fields()) {
    while (place != fields_->end() && place->field < entry.field) ++place;
    if (place == fields_->end()) break;
    if (place->field != entry.field) continue;
    scatter(*place, entry.value, value);
    scatter(*place, entry.bits, mask);
  }
}

void Columns::pack(const Packet& packet, Word* value) const {
  auto place = fields_->begin();
  for (const auto& [field, bits] : packet.values()) {
    while (place != fields_->end() && place->field < field) ++place;
    if (place == fields_->end()) break;
    if (place->field == field) scatter(*place, bits, value);
  }
}

Mask Columns::unpack_mask(const Word* mask) const {
  Mask result;
  for (const FieldColumns& place : *fields_) result.add(place.field, gather(place, mask));
  return result;
}

Match Columns::unpack(const Word* value, const Word* mask) const {
  Match match;
  for (const FieldColumns& place : *fields_) {
    match.set(place.field, gather(place, value), gather(place, mask));
  }
  return match;
}

namespace {

/// Counts up to 255 bits in each column of a word, all columns at once: plane i holds bit i of each count.
class ColumnCounts {
 public:
  void add(Word bits) {
    for (std::size_t i = 0; bits != 0; ++i) {
      const Word carry = planes_[i] & bits;
      planes_[i] ^= bits;
      bits = carry;
    }
  }
  [[nodiscard]] std::array<std::uint8_t, 64> by_column() const {
    std::array<std::uint8_t, 64> counts{};
    for (std::size_t i = 0; i < planes_.size(); ++i) {
      for (Word left = planes_[i]; left != 0; left &= left - 1) {
        counts[static_cast<std::size_t>(std::countr_zero(left))] |=
            static_cast<std::uint8_t>(1U << i);
      }
    }
    return counts;
  }

 private:
  std::array<Word, 8> planes_{};
};

}  // namespace

int best_split(const Ternaries& rows, std::span<const std::uint32_t> members,
               const std::vector<Word>& decided) {
  constexpr std::size_t kSample = 128;  // at least, and less than twice as many
  const std::size_t step = std::max<std::size_t>(1, members.size() / kSample);
  int best = -1;
  unsigned best_score = 0;
  for (std::size_t w = 0; w < rows.words(); ++w) {
    ColumnCounts with_zero;
    ColumnCounts with_one;
    Word seen = 0;
    for (std::size_t i = 0; i < members.size(); i += step) {
      const Word open = rows.mask[members[i]][w] & ~decided[w];
      const Word value = rows.value[members[i]][w];
      with_one.add(open & value);
      with_zero.add(open & ~value);
      seen |= open;
    }
    const auto zeros = with_zero.by_column();
    const auto ones = with_one.by_column();
    for (; seen != 0; seen &= seen - 1) {
      const auto column = static_cast<unsigned>(std::countr_zero(seen));
      // Both sides lose rows: the smaller loss counts most, the larger one breaks ties.
      const unsigned low = std::min(zeros[column], ones[column]);
      const unsigned high = std::max(zeros[column], ones[column]);
      const unsigned score = low * 4 + high;
      if (score > best_score) {
        best_score = score;
        best = static_cast<int>(w * 64 + column);
      }
    }
  }
  return best;
}

namespace {

class Classifier {
 public:
  Classifier(const Ternaries& rows, const Rows& packets)
      : rows_(rows), packets_(packets), hit_(packets.size(), kNoRow), decided_(rows.words(), 0) {}

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> rows(rows_.size());
    std::iota(rows.begin(), rows.end(), 0U);
    std::vector<std::uint32_t> packets(packets_.size());
    std::iota(packets.begin(), packets.end(), 0U);
    split(rows, packets);
    return std::move(hit_);
  }

 private:
  void scan(const std::vector<std::uint32_t>& rows, const std::vector<std::uint32_t>& packets) {
    const std::size_t words = rows_.words();
    for (const std::uint32_t packet : packets) {
      for (const std::uint32_t row : rows) {
        if (!matches(rows_.value[row], rows_.mask[row], packets_[packet], words)) continue;
        hit_[packet] = row;
        break;
      }
    }
  }

  void split(const std::vector<std::uint32_t>& rows, const std::vector<std::uint32_t>& packets) {
    constexpr std::size_t kFewRows = 12;
    if (packets.empty() || rows.empty()) return;
    const int column =
        rows.size() <= kFewRows || packets.size() <= 2 ? -1 : best_split(rows_, rows, decided_);
    if (column < 0) return scan(rows, packets);
    const auto w = static_cast<std::size_t>(column) / 64;
    const Word bit = Word{1} << column % 64;
    decided_[w] |= bit;
    for (const Word side : {Word{0}, bit}) {
      std::vector<std::uint32_t> side_rows;
      std::vector<std::uint32_t> side_packets;
      for (const std::uint32_t row : rows) {
        if ((rows_.mask[row][w] & bit) == 0 || (rows_.value[row][w] & bit) == side) {
          side_rows.push_back(row);
        }
      }
      for (const std::uint32_t packet : packets) {
        if ((packets_[packet][w] & bit) == side) side_packets.push_back(packet);
      }
      split(side_rows, side_packets);
    }
    decided_[w] &= ~bit;
  }

  const Ternaries& rows_;
  const Rows& packets_;
  std::vector<std::uint32_t> hit_;
  std::vector<Word> decided_;
};

/// Rows by mask, each mask with the first row of every value. Rows that no split separates (short
/// masks on different fields) are found this way in one step for each mask; so are those of a few matchers.
class MaskIndex {
 public:
  /// Where there are more masks, the index is not made.
  MaskIndex(const Ternaries& rows, std::size_t most_masks) : rows_(rows) {
    std::map<std::vector<Word>, std::uint32_t> known;
    std::vector<std::uint32_t> group_of(rows.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const Word* mask = rows.mask[row];
      if (row > 0 && std::equal(mask, mask + rows.words(), rows.mask[row - 1])) {
        group_of[row] = group_of[row - 1];
      } else {
        const auto next = static_cast<std::uint32_t>(groups_.size());
        const auto [place, fresh] = known.try_emplace({mask, mask + rows.words()}, next);
        if (fresh) groups_.push_back({row});
        group_of[row] = place->second;
      }
      ++groups_[group_of[row]].slots;
      if (groups_.size() > most_masks) return;
    }
    std::size_t all = 0;
    for (Group& group : groups_) {
      group.slots = std::bit_ceil(2 * group.slots);
      group.begin = all;
      all += group.slots;
    }
    slots_.resize(all);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const Group& group = groups_[group_of[row]];
      const std::uint64_t key = hash_under(rows.value[row], rows.mask[row], rows.words());
      Slot& slot = slots_[find(group, key)];
      if (slot.row == kNoRow) slot = {key, row};
    }
    made_ = true;
  }

  [[nodiscard]] bool made() const { return made_; }

  [[nodiscard]] std::uint32_t first(const Word* packet) const {
    std::uint32_t best = kNoRow;
    for (const Group& group : groups_) {  // in order of their first rows
      if (group.first > best) break;
      const std::uint32_t row =
          slots_[find(group, hash_under(packet, rows_.mask[group.first], rows_.words()))].row;
      if (row >= best) continue;
      if (matches(rows_.value[row], rows_.mask[row], packet, rows_.words())) best = row;
    }
    return best;
  }

 private:
  struct Group {
    std::uint32_t first;
    std::size_t begin = 0;
    std::size_t slots = 0;  ///< at most half full
  };
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t row = kNoRow;
  };
  [[nodiscard]] std::size_t find(const Group& group, std::uint64_t key) const {
    for (std::size_t i = key;; ++i) {
      const std::size_t place = group.begin + (i & (group.slots - 1));
      if (slots_[place].row == kNoRow || slots_[place].key == key) return place;
    }
  }

  const Ternaries& rows_;
  std::vector<Group> groups_;
  std::vector<Slot> slots_;
  bool made_ = false;
};

}  // namespace

std::vector<std::uint32_t> first_matches(const Ternaries& rows, const Rows& packets) {
  constexpr std::size_t kFewRows = 12;
  constexpr std::size_t kManyRows = 2000;
  constexpr std::size_t kFewPackets = 2;
  if (rows.size() > kFewRows && packets.size() > kFewPackets) {
    const MaskIndex index(rows, rows.size() > kManyRows ? 400 : 32);
    if (index.made()) {
      std::vector<std::uint32_t> hits;
      hits.reserve(packets.size());
      for (std::size_t i = 0; i < packets.size(); ++i) hits.push_back(index.first(packets[i]));
      return hits;
    }
  }
  return Classifier(rows, packets).run();
}

}  // namespace greynic::optimizer
