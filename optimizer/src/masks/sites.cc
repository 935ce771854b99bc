#include "src/masks/sites.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "src/key_table.h"

namespace greynic::optimizer::masks {
namespace {

constexpr int kMostBitsMore = 20;
constexpr std::size_t kMostUnions = 4'000;
constexpr int kUnionBits = 4;  ///< that each of two masks may lack of their union
constexpr double kNever = std::numeric_limits<double>::infinity();

/// Bits of `wide` that `narrow` lacks; -1 when it has one that `wide` lacks.
int bits_more(const std::vector<Word>& wide, const std::vector<Word>& narrow) {
  int more = 0;
  for (std::size_t w = 0; w < wide.size(); ++w) {
    if ((narrow[w] & ~wide[w]) != 0) return -1;
    more += std::popcount(wide[w] & ~narrow[w]);
  }
  return more;
}

}  // namespace

Sites::Sites(std::vector<std::vector<Word>> masks, std::vector<std::size_t> rules,
             std::size_t most_entries)
    : candidates_(std::move(masks)), ways_of_mask_(candidates_.size()) {
  add_unions(rules, most_entries);
  ways_of_candidate_.resize(candidates_.size());
  for (std::uint32_t mask = 0; mask < ways_of_mask_.size(); ++mask) {
    const auto count = static_cast<double>(rules[mask]);
    for (std::uint32_t site = 0; site < candidates_.size(); ++site) {
      const int more = bits_more(candidates_[site], candidates_[mask]);
      if (more < 0 || more > kMostBitsMore) continue;
      const double extra = count * (std::exp2(more) - 1.0);
      if (extra > static_cast<double>(most_entries)) continue;
      ways_of_mask_[mask].push_back({site, extra});
      ways_of_candidate_[site].push_back({mask, extra});
    }
    std::stable_sort(ways_of_mask_[mask].begin(), ways_of_mask_[mask].end(),
                     [](const Way& a, const Way& b) { return a.extra < b.extra; });
  }
}

void Sites::add_unions(const std::vector<std::size_t>& rules, std::size_t most_entries) {
  ByMask<bool> known;
  for (const auto& mask : candidates_) known[mask] = true;
  const std::size_t own = candidates_.size();
  for (std::size_t a = 0; a < own; ++a) {
    for (std::size_t b = a + 1; b < own && candidates_.size() < own + kMostUnions; ++b) {
      std::vector<Word> both = candidates_[a];
      for (std::size_t w = 0; w < both.size(); ++w) both[w] |= candidates_[b][w];
      const int more_a = bits_more(both, candidates_[a]);
      const int more_b = bits_more(both, candidates_[b]);
      if (more_a > kUnionBits || more_b > kUnionBits) continue;
      const std::size_t extra = (rules[a] << more_a) + (rules[b] << more_b);
      if (extra > most_entries || !known.try_emplace(both, true).second) continue;
      candidates_.push_back(std::move(both));
    }
  }
}

namespace {

/// The dual of facility location with a price for an entry: what each mask offers for a site, so that
/// no candidate is offered more than it costs, 1. The sum of the offers is a lower bound.
class DualAscent {
 public:
  DualAscent(const Sites& sites, double price)
      : sites_(sites), price_(price), slack_(sites.candidates(), 1.0), offer_(sites.masks(), 0.0) {}

  double run() {
    std::vector<std::uint32_t> rising(sites_.masks());
    for (std::uint32_t i = 0; i < rising.size(); ++i) rising[i] = i;
    // Masks with few ways rise first: for them, no other mask can pay.
    std::stable_sort(rising.begin(), rising.end(), [&](std::uint32_t a, std::uint32_t b) {
      return sites_.ways_of_mask(a).size() < sites_.ways_of_mask(b).size();
    });
    std::vector<std::size_t> level(sites_.masks(), 0);  // ways that cost no more than the offer
    while (!rising.empty()) {
      std::erase_if(rising, [&](std::uint32_t mask) { return !raise(mask, level[mask]); });
    }
    double sum = 0.0;
    for (const double offer : offer_) sum += offer;
    return sum;
  }

  [[nodiscard]] bool tight(std::uint32_t site) const { return slack_[site] < 1e-9; }

 private:
  /// To the cost of the mask's next way, or as far as the sites that it reaches have slack. False:
  /// it can rise no more.
  bool raise(std::uint32_t mask, std::size_t& level) {
    const auto& ways = sites_.ways_of_mask(mask);
    const double offer = offer_[mask];
    while (level < ways.size() && price_ * ways[level].extra <= offer) ++level;
    double step = level < ways.size() ? price_ * ways[level].extra - offer : kNever;
    const bool blocked_before_next = [&] {
      double least = kNever;
      for (std::size_t i = 0; i < level; ++i) least = std::min(least, slack_[ways[i].other]);
      const bool blocked = least <= step;
      step = std::min(step, least);
      return blocked;
    }();
    if (!(step > 0.0)) return !blocked_before_next;
    for (std::size_t i = 0; i < level; ++i) slack_[ways[i].other] -= step;
    offer_[mask] += step;
    return !blocked_before_next;
  }

  const Sites& sites_;
  double price_;
  std::vector<double> slack_;
  std::vector<double> offer_;
};

/// Open sites, and for each mask the two cheapest of them.
class Opened {
 public:
  Opened(const Sites& sites, std::vector<bool> open) : sites_(sites), open_(std::move(open)) {
    first_.resize(sites.masks());
    second_.resize(sites.masks());
    at_.resize(sites.candidates());
    for (std::uint32_t mask = 0; mask < sites.masks(); ++mask) look_up(mask);
  }

  /// What closing it adds in entries; kNever when a mask would have none left.
  [[nodiscard]] double closing(std::uint32_t site) const {
    double extra = 0.0;
    for (const std::uint32_t mask : at_[site]) {
      if (second_[mask] == kNoWay) return kNever;
      extra += way(mask, second_[mask]).extra - way(mask, first_[mask]).extra;
    }
    return extra;
  }
  /// What opening it saves in entries.
  [[nodiscard]] double opening(std::uint32_t site) const {
    double saved = 0.0;
    for (const Sites::Way& to : sites_.ways_of_candidate(site)) {
      saved += std::max(0.0, way(to.other, first_[to.other]).extra - to.extra);
    }
    return saved;
  }
  void set(std::uint32_t site, bool open) {
    open_[site] = open;
    for (const Sites::Way& to : sites_.ways_of_candidate(site)) look_up(to.other);
  }
  [[nodiscard]] bool is_open(std::uint32_t site) const { return open_[site]; }

  [[nodiscard]] Merging merging() const {
    Merging made;
    std::vector<bool> used(sites_.candidates(), false);
    for (std::uint32_t mask = 0; mask < sites_.masks(); ++mask) {
      const Sites::Way& to = way(mask, first_[mask]);
      made.site_of.push_back(to.other);
      made.extra += to.extra;
      if (!used[to.other]) ++made.kept;
      used[to.other] = true;
    }
    return made;
  }

  /// Closes and opens while one of both saves more than it costs at this price.
  void improve(double price) {
    bool better = true;
    constexpr int kMostRounds = 20;
    for (int round = 0; better && round < kMostRounds; ++round) {
      better = false;
      for (std::uint32_t site = 0; site < sites_.candidates(); ++site) {
        const bool change =
            open_[site] ? price * closing(site) < 1.0 - 1e-9 : price * opening(site) > 1.0 + 1e-9;
        if (!change) continue;
        set(site, !open_[site]);
        better = true;
      }
    }
  }

  /// Closes the cheapest again and again while the entries last.
  void close_within(double most_extra) {
    double extra = merging().extra;
    while (true) {
      std::uint32_t best = 0;
      double least = kNever;
      for (std::uint32_t site = 0; site < sites_.candidates(); ++site) {
        if (!open_[site]) continue;
        const double cost = closing(site);
        if (cost < least) {
          least = cost;
          best = site;
        }
      }
      if (!(extra + least <= most_extra)) return;
      extra += least;
      set(best, false);
    }
  }

 private:
  static constexpr std::size_t kNoWay = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] const Sites::Way& way(std::uint32_t mask, std::size_t place) const {
    return sites_.ways_of_mask(mask)[place];
  }
  void look_up(std::uint32_t mask) {
    const auto& ways = sites_.ways_of_mask(mask);
    if (known_.size() > mask && known_[mask]) {
      std::erase(at_[way(mask, first_[mask]).other], mask);
    }
    first_[mask] = second_[mask] = kNoWay;
    for (std::size_t i = 0; i < ways.size() && second_[mask] == kNoWay; ++i) {
      if (!open_[ways[i].other]) continue;
      (first_[mask] == kNoWay ? first_ : second_)[mask] = i;
    }
    if (known_.size() <= mask) known_.resize(mask + 1, false);
    known_[mask] = true;
    at_[way(mask, first_[mask]).other].push_back(mask);
  }

  const Sites& sites_;
  std::vector<bool> open_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> second_;
  std::vector<std::vector<std::uint32_t>> at_;  ///< masks whose cheapest site this is
  std::vector<bool> known_;
};

/// Prices for an entry that are worth a try: from where closing any site pays to where none does.
std::vector<double> prices(double most_extra) {
  std::vector<double> made;
  constexpr int kSteps = 30;
  const double least = 0.02 / std::max(1.0, most_extra);
  for (int i = 0; i <= kSteps; ++i)
    made.push_back(least * std::pow(2.0 / least, i / double{kSteps}));
  return made;
}

std::vector<bool> to_begin_with(const Sites& sites, const DualAscent& dual) {
  std::vector<bool> open(sites.candidates(), false);
  for (std::uint32_t site = 0; site < sites.candidates(); ++site) open[site] = dual.tight(site);
  for (std::uint32_t mask = 0; mask < sites.masks(); ++mask) {
    const auto& ways = sites.ways_of_mask(mask);
    const bool some =
        std::any_of(ways.begin(), ways.end(), [&](const auto& way) { return open[way.other]; });
    if (!some) open[ways.front().other] = true;
  }
  return open;
}

/// Fewer sites; as many, for fewer entries.
bool better(const Merging& a, const Merging& b) {
  return a.kept != b.kept ? a.kept < b.kept : a.extra < b.extra;
}

}  // namespace

std::vector<Merged> merge(const Sites& sites, const std::vector<double>& most_extra) {
  std::vector<bool> own(sites.candidates(), false);
  for (std::uint32_t mask = 0; mask < sites.masks(); ++mask) own[mask] = true;
  std::vector<Merged> made;
  std::vector<double> bounds(most_extra.size(), sites.masks() > 0 ? 1.0 : 0.0);
  for (const double most : most_extra) {
    Opened greedy(sites, own);
    greedy.close_within(most);
    made.push_back({greedy.merging(), 0});
  }
  const auto largest = std::max_element(most_extra.begin(), most_extra.end());
  for (const double price : prices(largest == most_extra.end() ? 0.0 : *largest)) {
    DualAscent dual(sites, price);
    const double offered = dual.run();
    Opened opened(sites, to_begin_with(sites, dual));
    opened.improve(price);
    const double extra = opened.merging().extra;
    for (std::size_t i = 0; i < most_extra.size(); ++i) {
      bounds[i] = std::max(bounds[i], offered - price * most_extra[i]);
      if (extra > most_extra[i]) continue;
      Opened closed = opened;
      closed.close_within(most_extra[i]);
      Merging merging = closed.merging();
      if (better(merging, made[i].merging)) made[i].merging = std::move(merging);
    }
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (i > 0 && better(made[i - 1].merging, made[i].merging))
      made[i].merging = made[i - 1].merging;
    made[i].fewest = static_cast<std::size_t>(std::ceil(bounds[i] - 1e-6));
  }
  return made;
}

}  // namespace greynic::optimizer::masks
