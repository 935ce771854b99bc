#include "src/fronts/fronts.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "src/fronts/arrivals.h"
#include "src/fronts/front_masks.h"
#include "src/key_table.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kMostFronts = 6;  ///< of one table
constexpr double kLeastGain = 1e-4;     ///< matchers that a front saves, mean over all packets

struct Front {
  std::size_t table = 0;  ///< place in the layout
  Matcher matcher;
  double gain = 0.0;  ///< matchers saved, mean over all packets
};

/// The fronts of one table.
class FrontSearch {
 public:
  FrontSearch(const FrontTable& table, std::uint32_t id, bool drawn)
      : table_(table), id_(id), drawn_(drawn) {}

  /// `price`: matchers that an entry must save.
  std::vector<Front> run(std::size_t place, std::size_t most_entries, double price) {
    std::vector<Front> fronts;
    at_.resize(table_.packets.size());
    std::iota(at_.begin(), at_.end(), 0U);
    if (first_masks_.empty()) first_masks_ = masks_to_try(table_, at_);
    while (fronts.size() < kMostFronts && most_entries > 0) {
      std::vector<Tried> good =
          best_of(fronts.empty() ? first_masks_ : masks_to_try(table_, at_), most_entries, price);
      std::vector<std::vector<Word>> both;
      for (std::size_t i = 0; i < good.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) both.push_back(either(good[i].mask, good[j].mask));
      }
      for (std::size_t i = 0; i < std::min<std::size_t>(2, good.size()); ++i) {
        for (const std::size_t row : table_.first_row) {  // so that rules which were first stay so
          both.push_back(
              either(good[i].mask, mask_of(table_.problem.rows, static_cast<std::uint32_t>(row))));
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

  [[nodiscard]] double weight(std::uint32_t arrival) const {
    return table_.packets[arrival].weight;
  }

  /// The entries under a mask that save most. A packet that one of them decides tries this matcher in
  /// place of all that it tried before; fronts that stand already count on both sides.
  [[nodiscard]] Tried tried(const std::vector<Word>& mask, std::size_t most_entries,
                            double price) const {
    Tried made{mask, {}, 0.0, 0.0};
    std::unordered_map<std::vector<Word>, std::uint32_t, RowHash> known;
    std::vector<Word> key(table_.words);
    for (const std::uint32_t arrival : at_) {
      made.gain -= weight(arrival);  // all of them try the front
      const std::uint32_t row = table_.packets[arrival].row;
      if (row == kNoRow || !covers(mask.data(), table_.problem.rows.mask[row])) continue;
      for (std::size_t w = 0; w < table_.words; ++w) key[w] = table_.bits[arrival][w] & mask[w];
      const auto [place, fresh] = known.try_emplace(key, made.entries.size());
      if (fresh) made.entries.push_back({arrival, 0.0, 0.0, 0.0});
      Entry& entry = made.entries[place->second];
      entry.worth += weight(arrival) * table_.packets[arrival].tried;
      entry.weight += weight(arrival);
      entry.heaviest = std::max(entry.heaviest,
                                table_.packets[arrival].heaviest * table_.packets[arrival].tried);
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
    for (std::size_t w = 0; w < table_.words; ++w) {
      if ((narrow[w] & ~wide[w]) != 0) return false;
    }
    return true;
  }

  /// Entries that meet a row before theirs which does something else.
  void drop_blocked(const std::vector<Word>& mask, std::vector<Entry>& entries) const {
    const Ternaries& t = table_.problem.rows;
    std::vector<bool> blocked(entries.size(), false);
    for (std::size_t m = 0; m < table_.first_row.size(); ++m) {
      const std::size_t end = m + 1 < table_.first_row.size() ? table_.first_row[m + 1] : t.size();
      std::vector<std::uint32_t> rows;
      for (auto row = static_cast<std::uint32_t>(table_.first_row[m]); row < end; ++row) {
        rows.push_back(row);
      }
      if (rows.empty()) continue;
      const std::vector<Word> shared = common(mask_of(t, rows.front()), mask);
      const KeyTable table(
          t, rows, shared.data(), [](std::uint32_t row) { return row; }, table_.problem.effect);
      for (std::size_t e = 0; e < entries.size(); ++e) {
        const std::uint32_t own = table_.packets[entries[e].arrival].row;
        if (blocked[e] || own <= rows.front()) continue;
        const Ranks* const met =
            table.lookup(hash_under(table_.bits[entries[e].arrival], shared.data(), table_.words));
        blocked[e] = met != nullptr && met->blocks(own, table_.problem.effect[own]);
      }
    }
    std::size_t place = 0;
    std::erase_if(entries, [&](const Entry&) { return blocked[place++]; });
  }

  [[nodiscard]] Matcher matcher_of(const Tried& front) const {
    Matcher made;
    made.mask = table_.problem.columns.unpack_mask(front.mask.data());
    std::vector<Word> bits(table_.words);
    for (const Entry& entry : front.entries) {
      const FlowRule& decides = *table_.by_row[table_.packets[entry.arrival].row];
      for (std::size_t w = 0; w < table_.words; ++w) {
        bits[w] = table_.bits[entry.arrival][w] & front.mask[w];
      }
      FlowRule rule;
      rule.match = table_.problem.columns.unpack(bits.data(), front.mask.data());
      rule.table = id_;
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
    std::vector<Word> key(table_.words);
    const auto key_of = [&](std::uint32_t arrival) -> const std::vector<Word>& {
      for (std::size_t w = 0; w < table_.words; ++w)
        key[w] = table_.bits[arrival][w] & front.mask[w];
      return key;
    };
    for (const Entry& entry : front.entries) taken[key_of(entry.arrival)] = true;
    std::erase_if(at_, [&](std::uint32_t arrival) { return taken.contains(key_of(arrival)); });
  }

  const FrontTable& table_;
  std::uint32_t id_;
  bool drawn_;                                  ///< others will come in place of these packets
  std::vector<std::vector<Word>> first_masks_;  ///< for packets that no front decides so far
  std::vector<std::uint32_t> at_;               ///< packets that no front decides so far
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
    const FrontTable table(layout.tables[i], arrivals[i], traffic, all, whole_fields);
    FrontSearch search(table, layout.tables[i].id, traffic.drawn);
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
