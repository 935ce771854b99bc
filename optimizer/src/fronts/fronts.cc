#include "src/fronts/fronts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "src/fronts/arrivals.h"
#include "src/key_table.h"
#include "src/problem.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kMostFronts = 6;       ///< of one table
constexpr std::size_t kPacketsSampled = 48;  ///< that masks are found for
constexpr double kBitsForFields = 1e9;       ///< a step that no number of bits matters beside
constexpr double kLeastGain = 1e-4;          ///< matchers that a front saves, mean over all packets

/// Packets that are alike in all that the table looks at.
struct Alike {
  std::uint32_t row = kNoRow;  ///< of the table, that they hit
  double tried = 0.0;          ///< matchers, without fronts
  double weight = 0.0;         ///< share of all packets
  double heaviest = 0.0;       ///< of one flow
};

struct Front {
  std::size_t table = 0;  ///< place in the layout
  Matcher matcher;
  double gain = 0.0;  ///< matchers saved, mean over all packets
};

/// A table's rules in the order in which they are tried.
class FrontSearch {
 public:
  FrontSearch(const LayoutTable& table, const std::vector<Arrival>& arrivals,
              const Traffic& traffic, double all, const std::set<MatchField>& whole_fields)
      : table_(table), drawn_(traffic.drawn) {
    RuleSet rules;
    for (const Matcher& matcher : table.matchers) {
      if (matcher.rules.empty()) continue;
      first_row_.push_back(rules.rules.size());
      for (const FlowRule& rule : matcher.rules) {
        rules.rules.push_back(rule);
        rules.rules.back().priority = static_cast<RulePriority>(rules.rules.size());
        by_row_.push_back(&rule);
      }
    }
    std::vector<std::uint32_t> members(rules.rules.size());
    for (std::uint32_t i = 0; i < members.size(); ++i) members[i] = i;
    Effects effects;
    problem_.emplace(make_problem(rules, members, effects));
    words_ = problem_->rows.words();
    find_fields(whole_fields);
    take_in(arrivals, traffic, all);
  }

  /// `price`: matchers that an entry must save.
  std::vector<Front> run(std::size_t place, std::size_t most_entries, double price) {
    std::vector<Front> fronts;
    at_.resize(left_.size());
    std::iota(at_.begin(), at_.end(), 0U);
    if (first_masks_.empty()) first_masks_ = masks();
    while (fronts.size() < kMostFronts && most_entries > 0) {
      std::vector<Tried> good =
          best_of(fronts.empty() ? first_masks_ : masks(), most_entries, price);
      std::vector<std::vector<Word>> both;
      for (std::size_t i = 0; i < good.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) both.push_back(either(good[i].mask, good[j].mask));
      }
      for (std::size_t i = 0; i < std::min<std::size_t>(2, good.size()); ++i) {
        for (const std::size_t row : first_row_) {  // so that rules which were first stay so
          both.push_back(
              either(good[i].mask, mask_of(problem_->rows, static_cast<std::uint32_t>(row))));
        }
      }
      for (Tried& one : best_of(both, most_entries, price)) good.push_back(std::move(one));
      if (good.empty()) break;
      const auto best = std::ranges::max_element(good, {}, &Tried::worth);
      most_entries -= best->entries.size();
      fronts.push_back({place, matcher_of(*best), best->gain});
      leave(*best);
    }
    return fronts;
  }

 private:
  struct Entry {
    std::uint32_t arrival = 0;  ///< one of them
    double worth = 0.0;
    double weight = 0.0;
    double heaviest = 0.0;  ///< what one flow adds to the worth
  };
  struct Tried {
    std::vector<Word> mask;
    std::vector<Entry> entries;
    double gain = 0.0;
    double worth = 0.0;  ///< gain without the price of the entries
  };

  /// The masks that save most.
  [[nodiscard]] std::vector<Tried> best_of(const std::vector<std::vector<Word>>& masks,
                                           std::size_t most_entries, double price) const {
    constexpr std::size_t kMost = 6;
    std::vector<Tried> best;
    for (const std::vector<Word>& mask : masks) {
      Tried one = tried(mask, most_entries, price);
      if (one.gain <= kLeastGain || one.worth <= 0.0) continue;
      best.insert(std::ranges::upper_bound(best, one.worth, std::greater{}, &Tried::worth),
                  std::move(one));
      if (best.size() > kMost) best.pop_back();
    }
    return best;
  }

  [[nodiscard]] static std::vector<Word> either(std::vector<Word> a, const std::vector<Word>& b) {
    for (std::size_t w = 0; w < a.size(); ++w) a[w] |= b[w];
    return a;
  }

  void find_fields(const std::set<MatchField>& whole_fields) {
    const std::vector<Word> every(words_, ~Word{0});
    const Mask looked_at = problem_->columns.unpack_mask(every.data());
    for (const FieldMask& part : looked_at.fields()) {
      Match match;
      match.set(part.field, 0, part.bits);
      std::vector<Word> value(words_, 0);
      std::vector<Word> mask(words_, 0);
      problem_->columns.pack(match, value.data(), mask.data());
      fields_.push_back(std::move(mask));
      whole_.push_back(whole_fields.contains(part.field));
    }
  }

  void take_in(const std::vector<Arrival>& arrivals, const Traffic& traffic, double all) {
    packets_.emplace(words_);
    std::unordered_map<std::vector<Word>, std::uint32_t, RowHash> known;
    std::vector<Word> bits(words_);
    for (const Arrival& arrival : arrivals) {
      std::ranges::fill(bits, Word{0});
      problem_->columns.pack(arrival.packet, bits.data());
      const auto next = static_cast<std::uint32_t>(left_.size());
      const auto [place, fresh] = known.try_emplace(bits, next);
      if (fresh) {
        packets_->add(bits.data());
        left_.push_back({arrival.row, arrival.tried, 0.0, 0.0});
      }
      Alike& alike = left_[place->second];
      const double weight = traffic.flows[arrival.flow].weight / all;
      alike.weight += weight;
      alike.heaviest = std::max(alike.heaviest, weight);
    }
  }

  [[nodiscard]] double weight(std::uint32_t arrival) const { return left_[arrival].weight; }

  /// What the packet's rule looks at, and what keeps all that stands before it away: single bits, or all that a rule
  /// asks of a field. Chosen first is what keeps most away for what it costs: the fewer of the packets alike
  /// agree with this one in it, the more entries they need. `step` is a cost, in bits, that each choice has besides.
  [[nodiscard]] std::vector<Word> cut_out(std::uint32_t arrival, double step,
                                          bool single_bits) const {
    const Ternaries& t = problem_->rows;
    const std::uint32_t row = left_[arrival].row;
    const Word* const packet = (*packets_)[arrival];
    std::vector<Word> mask = mask_of(t, row);
    std::vector<std::uint32_t> before;
    const auto apart = [&](std::uint32_t other) {
      return !overlap(packet, mask.data(), t.value[other], t.mask[other], words_);
    };
    for (std::uint32_t other = 0; other < row; ++other) {
      if (problem_->effect[other] != problem_->effect[row] && !apart(other)) {
        before.push_back(other);
      }
    }
    std::vector<std::uint32_t> alike = alike_.at(mask);
    const auto differs = [&](std::uint32_t other, const std::vector<Word>& bits) {
      for (std::size_t w = 0; w < words_; ++w) {
        if ((((*packets_)[other][w] ^ packet[w]) & bits[w]) != 0) return true;
      }
      return false;
    };
    std::map<std::vector<Word>, std::size_t> keeps_away;
    std::vector<std::size_t> by_column(words_ * 64);
    std::vector<Word> bits(words_);
    while (!before.empty()) {
      keeps_away.clear();
      std::ranges::fill(by_column, 0);
      for (const std::uint32_t other : before) {
        for (std::size_t f = 0; f < fields_.size(); ++f) {
          Word any = 0;
          for (std::size_t w = 0; w < words_; ++w) {
            bits[w] = t.mask[other][w] & fields_[f][w];
            const Word different = (t.value[other][w] ^ packet[w]) & bits[w];
            any |= different;
            for (Word rest = whole_[f] || !single_bits ? 0 : different; rest != 0;
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
      for (std::size_t w = 0; w < words_; ++w) mask[w] |= (*best)[w];
      std::erase_if(alike, [&](std::uint32_t other) { return differs(other, *best); });
      std::erase_if(before, apart);
    }
    return mask;
  }

  /// Of each field that the rule does not look at, the mask keeps its first columns only, if it may be looked at in part:
  /// entries for all values of a few bits serve packets that were not seen, too.
  [[nodiscard]] std::vector<Word> with_few_bits(const std::vector<Word>& mask, const Word* own,
                                                unsigned most) const {
    std::vector<Word> few(own, own + words_);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const std::vector<Word>& field = fields_[f];
      unsigned left = whole_[f] ? std::numeric_limits<unsigned>::max() : most;
      for (std::size_t w = 0; w < words_; ++w) {
        for (Word bits = mask[w] & field[w] & ~own[w]; bits != 0 && left > 0; --left) {
          few[w] |= bits & (~bits + 1);
          bits &= bits - 1;
        }
      }
    }
    return few;
  }

  /// Packets by what their row looks at, some of each.
  void find_alike() {
    constexpr std::size_t kMostAlike = 256;
    alike_.clear();
    ByMask<std::vector<std::uint32_t>> all;
    for (const std::uint32_t arrival : at_) {
      if (left_[arrival].row != kNoRow && left_[arrival].tried > 1) {
        all[mask_of(problem_->rows, left_[arrival].row)].push_back(arrival);
      }
    }
    for (auto& [mask, members] : all) {
      std::vector<std::uint32_t>& some = alike_[mask];
      const std::size_t step = (members.size() + kMostAlike - 1) / kMostAlike;
      for (std::size_t i = 0; i < members.size(); i += step) some.push_back(members[i]);
    }
  }

  [[nodiscard]] std::vector<std::vector<Word>> masks() {
    find_alike();
    double loss = 0.0;
    for (const std::uint32_t arrival : at_) loss += loss_of(arrival);
    std::set<std::vector<Word>> found;
    ByMask<std::vector<std::vector<Word>>> bitwise;  // by what the row looks at
    std::vector<Word> all(words_, 0);
    const double step = loss / kPacketsSampled;
    double next = 0.5 * step;
    for (const std::uint32_t arrival : at_) {
      next -= loss_of(arrival);
      if (next >= 0.0) continue;
      while (next < 0.0) next += step;
      const std::vector<Word> own = mask_of(problem_->rows, left_[arrival].row);
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

  /// What a packet tries beyond one matcher; of those that miss, fronts know nothing.
  [[nodiscard]] double loss_of(std::uint32_t arrival) const {
    const Alike& packets = left_[arrival];
    return packets.row == kNoRow ? 0.0 : packets.weight * (packets.tried - 1.0);
  }

  /// The entries under a mask that save most. A packet that one of them decides tries this matcher in
  /// place of all that it tried before; fronts that stand already count on both sides.
  [[nodiscard]] Tried tried(const std::vector<Word>& mask, std::size_t most_entries,
                            double price) const {
    Tried made{mask, {}, 0.0, 0.0};
    std::unordered_map<std::vector<Word>, std::uint32_t, RowHash> known;
    std::vector<Word> key(words_);
    for (const std::uint32_t arrival : at_) {
      made.gain -= weight(arrival);  // all of them try the front
      const std::uint32_t row = left_[arrival].row;
      if (row == kNoRow || !covers(mask.data(), problem_->rows.mask[row])) continue;
      for (std::size_t w = 0; w < words_; ++w) key[w] = (*packets_)[arrival][w] & mask[w];
      const auto [place, fresh] = known.try_emplace(key, made.entries.size());
      if (fresh) made.entries.push_back({arrival, 0.0, 0.0, 0.0});
      Entry& entry = made.entries[place->second];
      entry.worth += weight(arrival) * left_[arrival].tried;
      entry.weight += weight(arrival);
      entry.heaviest = std::max(entry.heaviest, left_[arrival].heaviest * left_[arrival].tried);
    }
    if (drawn_) {
      for (Entry& entry : made.entries) entry.worth -= entry.heaviest;
    }
    std::erase_if(made.entries, [&](const Entry& entry) { return entry.worth <= price; });
    drop_blocked(mask, made.entries);
    std::stable_sort(made.entries.begin(), made.entries.end(),
                     [](const Entry& a, const Entry& b) { return a.worth > b.worth; });
    if (made.entries.size() > most_entries) made.entries.resize(most_entries);
    for (const Entry& entry : made.entries) made.gain += entry.worth;
    made.worth = made.gain - price * static_cast<double>(made.entries.size());
    return made;
  }

  [[nodiscard]] bool covers(const Word* wide, const Word* narrow) const {
    for (std::size_t w = 0; w < words_; ++w) {
      if ((narrow[w] & ~wide[w]) != 0) return false;
    }
    return true;
  }

  /// Entries that meet a row before theirs which does something else.
  void drop_blocked(const std::vector<Word>& mask, std::vector<Entry>& entries) const {
    const Ternaries& t = problem_->rows;
    std::vector<bool> blocked(entries.size(), false);
    for (std::size_t m = 0; m < first_row_.size(); ++m) {
      const std::size_t end = m + 1 < first_row_.size() ? first_row_[m + 1] : t.size();
      std::vector<std::uint32_t> rows;
      for (auto row = static_cast<std::uint32_t>(first_row_[m]); row < end; ++row) {
        rows.push_back(row);
      }
      if (rows.empty()) continue;
      const std::vector<Word> shared = common(mask_of(t, rows.front()), mask);
      const KeyTable table(
          t, rows, shared.data(), [](std::uint32_t row) { return row; }, problem_->effect);
      for (std::size_t e = 0; e < entries.size(); ++e) {
        const std::uint32_t own = left_[entries[e].arrival].row;
        if (blocked[e] || own <= rows.front()) continue;
        const Ranks* const met =
            table.lookup(hash_under((*packets_)[entries[e].arrival], shared.data(), words_));
        blocked[e] = met != nullptr && met->blocks(own, problem_->effect[own]);
      }
    }
    std::size_t place = 0;
    std::erase_if(entries, [&](const Entry&) { return blocked[place++]; });
  }

  [[nodiscard]] Matcher matcher_of(const Tried& front) const {
    Matcher made;
    made.mask = problem_->columns.unpack_mask(front.mask.data());
    std::vector<Word> bits(words_);
    for (const Entry& entry : front.entries) {
      const FlowRule& decides = *by_row_[left_[entry.arrival].row];
      for (std::size_t w = 0; w < words_; ++w) {
        bits[w] = (*packets_)[entry.arrival][w] & front.mask[w];
      }
      FlowRule rule;
      rule.match = problem_->columns.unpack(bits.data(), front.mask.data());
      rule.table = table_.id;
      rule.actions = decides.actions;
      rule.from = decides.from;
      rule.weight = entry.weight;
      made.rules.push_back(std::move(rule));
    }
    return made;
  }

  /// Packets that the front decides come by no other.
  void leave(const Tried& front) {
    std::unordered_map<std::vector<Word>, bool, RowHash> taken;
    std::vector<Word> key(words_);
    const auto key_of = [&](std::uint32_t arrival) -> const std::vector<Word>& {
      for (std::size_t w = 0; w < words_; ++w) key[w] = (*packets_)[arrival][w] & front.mask[w];
      return key;
    };
    for (const Entry& entry : front.entries) taken[key_of(entry.arrival)] = true;
    std::erase_if(at_, [&](std::uint32_t arrival) { return taken.contains(key_of(arrival)); });
  }

  const LayoutTable& table_;
  bool drawn_;  ///< others will come in place of these packets
  std::vector<Alike> left_;
  std::vector<std::size_t> first_row_;  ///< by matcher
  std::vector<const FlowRule*> by_row_;
  std::optional<Problem> problem_;
  std::size_t words_ = 0;
  std::vector<std::vector<Word>> fields_;       ///< the columns of each field
  std::vector<bool> whole_;                     ///< by field: not looked at in part
  std::optional<Rows> packets_;                 ///< by place in left_
  std::vector<std::vector<Word>> first_masks_;  ///< for packets that no front decides so far
  ByMask<std::vector<std::uint32_t>> alike_;    ///< packets by what their row looks at
  std::vector<std::uint32_t> at_;               ///< arrivals that no front decides so far
};

bool has_fronts(const LayoutTable& table) {
  return table.matchers.size() > 1 && !table.software &&
         std::ranges::all_of(table.matchers, [](const Matcher& matcher) {
           return matcher.mask.ranges().empty() && matcher.idle_seconds == 0;
         });
}

void put_in_front(LayoutTable& table, const std::vector<Matcher>& fronts) {
  table.matchers.insert(table.matchers.begin(), fronts.begin(), fronts.end());
  for (std::size_t i = 0; i < table.matchers.size(); ++i) {
    table.matchers[i].priority = static_cast<RulePriority>(i);
    for (FlowRule& rule : table.matchers[i].rules) rule.priority = table.matchers[i].priority;
  }
}

/// All that pays at a price, those first that save most for each entry, as far as the room goes.
struct Chosen {
  std::map<std::size_t, std::vector<Matcher>> fronts;  ///< by place in the layout
  double gain = 0.0;
};

Chosen choose(std::vector<Front> found, std::size_t most_entries) {
  // Fronts of one table stay in their order: each later one is worth less for an entry, or has to wait.
  std::map<std::size_t, double> last;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t f = 0; f < found.size(); ++f) {
    double worth = found[f].gain / static_cast<double>(found[f].matcher.rules.size());
    const auto [before, fresh] = last.try_emplace(found[f].table, worth);
    worth = before->second = std::min(worth, before->second);
    order.emplace_back(-worth, f);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Chosen chosen;
  std::map<std::size_t, bool> closed;
  for (const auto& [worth, f] : order) {
    Front& front = found[f];
    if (closed[front.table] || front.matcher.rules.size() > most_entries) {
      closed[front.table] = true;
      continue;
    }
    most_entries -= front.matcher.rules.size();
    chosen.gain += front.gain;
    chosen.fronts[front.table].push_back(std::move(front.matcher));
  }
  return chosen;
}

}  // namespace

Layout with_fronts(const Layout& layout, const Traffic& traffic, std::size_t most_entries,
                   const std::set<MatchField>& whole_fields) {
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  const auto arrivals = arrivals_of(layout, traffic);
  // The dearer an entry, the fewer a front takes, and the more fronts find room.
  constexpr std::array kPrices = {0.0, 1e-5, 5e-5, 2e-4};
  std::array<std::vector<Front>, kPrices.size()> found;
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    double late = 0.0;
    for (const Arrival& arrival : arrivals[i]) {
      late += traffic.flows[arrival.flow].weight * (arrival.tried - 1.0);
    }
    if (!has_fronts(layout.tables[i]) || late < kLeastGain * all) continue;
    FrontSearch search(layout.tables[i], arrivals[i], traffic, all, whole_fields);
    for (std::size_t p = 0; p < kPrices.size(); ++p) {
      for (Front& front : search.run(i, most_entries, kPrices[p])) {
        found[p].push_back(std::move(front));
      }
    }
  }
  Chosen best;
  for (std::vector<Front>& at_price : found) {
    Chosen chosen = choose(std::move(at_price), most_entries);
    if (chosen.gain > best.gain) best = std::move(chosen);
  }
  Layout made = layout;
  for (const auto& [place, matchers] : best.fronts) put_in_front(made.tables[place], matchers);
  return made;
}

}  // namespace greynic::optimizer
