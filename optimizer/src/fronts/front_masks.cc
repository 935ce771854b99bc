#include "src/fronts/front_masks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "src/key_table.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kPacketsSampled = 48;  ///< that masks are found for
constexpr double kBitsForFields = 1e9;       ///< a step that no number of bits matters beside

class MaskSearch {
 public:
  MaskSearch(const FrontTable& table, const std::vector<std::uint32_t>& at)
      : table_(table), at_(at) {
    find_alike();
  }

  [[nodiscard]] std::vector<std::vector<Word>> masks() {
    double loss = 0.0;
    for (const std::uint32_t arrival : at_) loss += loss_of(arrival);
    std::set<std::vector<Word>> found;
    ByMask<std::vector<std::vector<Word>>> bitwise;  // by what the row looks at
    std::vector<Word> all(table_.words, 0);
    const double step = loss / kPacketsSampled;
    double next = 0.5 * step;
    for (const std::uint32_t arrival : at_) {
      next -= loss_of(arrival);
      if (next >= 0.0) continue;
      while (next < 0.0) next += step;
      const std::vector<Word> own = mask_of(table_.problem.rows, table_.packets[arrival].row);
      const std::vector<Word> whole = cut_out(arrival, kBitsForFields, false);
      all = either(all, whole);
      found.insert(whole);
      for (const unsigned few : {1U, 2U, 3U, 4U, 6U}) {
        found.insert(with_few_bits(whole, own.data(), few));
      }
      // One packet needs few bits; those of several together hold entries for most.
      std::vector<std::vector<Word>>& before = bitwise[own];
      for (const double bits : {0.02, 0.5, 4.0}) {
        std::vector<Word> mask = cut_out(arrival, bits, true);
        found.insert(mask);
        std::vector<Word> some = mask;
        for (std::size_t i = 0; i < std::min<std::size_t>(3, before.size()); ++i) {
          some = either(std::move(some), before[before.size() - 1 - i]);
          found.insert(some);
        }
        before.push_back(std::move(mask));
      }
    }
    if (!found.empty()) found.insert(all);
    return {found.begin(), found.end()};
  }

 private:
  /// Packets by what their row looks at, some of each.
  void find_alike() {
    constexpr std::size_t kMostAlike = 256;
    alike_.clear();
    ByMask<std::vector<std::uint32_t>> all;
    for (const std::uint32_t arrival : at_) {
      if (table_.packets[arrival].row != kNoRow && table_.packets[arrival].tried > 1) {
        all[mask_of(table_.problem.rows, table_.packets[arrival].row)].push_back(arrival);
      }
    }
    for (auto& [mask, members] : all) {
      std::vector<std::uint32_t>& some = alike_[mask];
      const std::size_t step = (members.size() + kMostAlike - 1) / kMostAlike;
      for (std::size_t i = 0; i < members.size(); i += step) some.push_back(members[i]);
    }
  }

  /// What a packet tries beyond one matcher; of those that miss, fronts know nothing.
  [[nodiscard]] double loss_of(std::uint32_t arrival) const {
    const FrontTable::Packets& packets = table_.packets[arrival];
    return packets.row == kNoRow ? 0.0 : packets.weight * (packets.tried - 1.0);
  }

  /// What the packet's rule looks at, and what keeps all that stands before it away: single bits, or all that a rule
  /// asks of a field. Chosen first is what keeps most away for what it costs: the fewer of the packets alike
  /// agree with this one in it, the more entries they need. `step` is a cost, in bits, that each choice has besides.
  [[nodiscard]] std::vector<Word> cut_out(std::uint32_t arrival, double step,
                                          bool single_bits) const {
    const Ternaries& t = table_.problem.rows;
    const std::uint32_t row = table_.packets[arrival].row;
    const Word* const packet = table_.bits[arrival];
    std::vector<Word> mask = mask_of(t, row);
    std::vector<std::uint32_t> before;
    const auto apart = [&](std::uint32_t other) {
      return !overlap(packet, mask.data(), t.value[other], t.mask[other], table_.words);
    };
    for (std::uint32_t other = 0; other < row; ++other) {
      if (table_.problem.effect[other] != table_.problem.effect[row] && !apart(other)) {
        before.push_back(other);
      }
    }
    std::vector<std::uint32_t> alike = alike_.at(mask);
    const auto differs = [&](std::uint32_t other, const std::vector<Word>& bits) {
      for (std::size_t w = 0; w < table_.words; ++w) {
        if (((table_.bits[other][w] ^ packet[w]) & bits[w]) != 0) return true;
      }
      return false;
    };
    std::map<std::vector<Word>, std::size_t> keeps_away;
    std::vector<std::size_t> by_column(table_.words * 64);
    std::vector<Word> bits(table_.words);
    while (!before.empty()) {
      keeps_away.clear();
      std::ranges::fill(by_column, 0);
      for (const std::uint32_t other : before) {
        for (std::size_t f = 0; f < table_.fields.size(); ++f) {
          Word any = 0;
          for (std::size_t w = 0; w < table_.words; ++w) {
            bits[w] = t.mask[other][w] & table_.fields[f][w];
            const Word different = (t.value[other][w] ^ packet[w]) & bits[w];
            any |= different;
            for (Word rest = table_.whole[f] || !single_bits ? 0 : different; rest != 0;
                 rest &= rest - 1) {
              ++by_column[w * 64 + static_cast<std::size_t>(std::countr_zero(rest))];
            }
          }
          if (any != 0) ++keeps_away[bits];
        }
      }
      std::ranges::fill(bits, Word{0});
      for (std::size_t c = 0; c < by_column.size(); ++c) {
        if (by_column[c] == 0) continue;
        bits[c / 64] = Word{1} << c % 64;
        keeps_away[bits] = by_column[c];
        bits[c / 64] = 0;
      }
      const std::vector<Word>* best = nullptr;
      double most = 0.0;
      for (const auto& [asked, count] : keeps_away) {
        const auto left = std::ranges::count_if(
            alike, [&, &looked = asked](std::uint32_t other) { return !differs(other, looked); });
        const double share =
            (static_cast<double>(left) + 0.5) / (static_cast<double>(alike.size()) + 0.5);
        const double worth = static_cast<double>(count) / (step - std::log2(share));
        if (worth <= most) continue;
        most = worth;
        best = &asked;
      }
      for (std::size_t w = 0; w < table_.words; ++w) mask[w] |= (*best)[w];
      std::erase_if(alike, [&](std::uint32_t other) { return differs(other, *best); });
      std::erase_if(before, apart);
    }
    return mask;
  }

  /// Of each field that the rule does not look at, the mask keeps its first columns only, if it may be looked at in part:
  /// entries for all values of a few bits serve packets that were not seen, too.
  [[nodiscard]] std::vector<Word> with_few_bits(const std::vector<Word>& mask, const Word* own,
                                                unsigned most) const {
    std::vector<Word> few(own, own + table_.words);
    for (std::size_t f = 0; f < table_.fields.size(); ++f) {
      const std::vector<Word>& field = table_.fields[f];
      unsigned left = table_.whole[f] ? std::numeric_limits<unsigned>::max() : most;
      for (std::size_t w = 0; w < table_.words; ++w) {
        for (Word bits = mask[w] & field[w] & ~own[w]; bits != 0 && left > 0; --left) {
          few[w] |= bits & (~bits + 1);
          bits &= bits - 1;
        }
      }
    }
    return few;
  }

  const FrontTable& table_;
  const std::vector<std::uint32_t>& at_;
  ByMask<std::vector<std::uint32_t>> alike_;  ///< packets by what their row looks at, some of each
};

}  // namespace

std::vector<std::vector<Word>> masks_to_try(const FrontTable& table,
                                            const std::vector<std::uint32_t>& at) {
  return MaskSearch(table, at).masks();
}

std::vector<Word> either(std::vector<Word> a, const std::vector<Word>& b) {
  for (std::size_t w = 0; w < a.size(); ++w) a[w] |= b[w];
  return a;
}

}  // namespace greynic::optimizer
