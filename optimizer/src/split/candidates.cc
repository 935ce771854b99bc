#include "src/split/candidates.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "src/key_table.h"

namespace greynic::optimizer::split {
namespace {

constexpr std::size_t kMostFlowsOfRule = 512;  ///< that are cut out one by one
constexpr std::size_t kMostCovers = 64;

using Members = std::vector<std::uint32_t>;

std::vector<Flow> flows_of(const Entering& entering, const Members& decider) {
  std::unordered_map<std::vector<Word>, std::size_t, RowHash> known;
  std::vector<Flow> flows;
  const std::size_t words = entering.packets.words();
  for (std::uint32_t i = 0; i < decider.size(); ++i) {
    if (decider[i] == kNoRow) continue;
    const Word* const packet = entering.packets[i];
    const auto [place, fresh] = known.try_emplace({packet, packet + words}, flows.size());
    if (fresh) flows.push_back({i, decider[i], 0.0, 0});
    flows[place->second].weight += entering.weight[i];
  }
  std::stable_sort(flows.begin(), flows.end(),
                   [](const Flow& a, const Flow& b) { return a.weight > b.weight; });
  return flows;
}

class Finder {
 public:
  Finder(const Problem& problem, const Entering& entering, Candidates& found)
      : problem_(problem), entering_(entering), found_(found), words_(problem.rows.words()) {
    fields_ = field_masks();
  }

  void add_rule(std::uint32_t row, const Members& flows) {
    blockers_ = blockers_of(row);
    if (blockers_.empty()) {
      Piece piece{row, number(mask_of(problem_.rows, row)), flows, weight_of(flows), true, {}};
      found_.pieces.push_back(std::move(piece));
      return;
    }
    add_parts(row, flows);
    Covered covered{row, widest(blockers_), flows, weight_of(flows)};
    if (covered.covers.size() <= kMostCovers) found_.covered.push_back(std::move(covered));
  }

 private:
  /// The columns of each field, as masks.
  [[nodiscard]] std::vector<std::vector<Word>> field_masks() const {
    std::vector<std::vector<Word>> masks;
    const std::vector<Word> all(words_, ~Word{0});
    const Mask looked_at = problem_.columns.unpack_mask(all.data());
    for (const FieldMask& entry : looked_at.fields()) {
      Match match;
      match.set(entry.field, 0, entry.bits);
      std::vector<Word> value(words_, 0);
      std::vector<Word> mask(words_, 0);
      problem_.columns.pack(match, value.data(), mask.data());
      masks.push_back(std::move(mask));
    }
    return masks;
  }

  /// Rows that win over `row`, overlap it and do something else.
  [[nodiscard]] Members blockers_of(std::uint32_t row) const {
    Members found;
    const Ternaries& t = problem_.rows;
    for (std::uint32_t other = 0; other < row; ++other) {
      if (problem_.effect[other] == problem_.effect[row]) continue;
      if (overlap(t.value[other], t.mask[other], t.value[row], t.mask[row], words_)) {
        found.push_back(other);
      }
    }
    return found;
  }

  /// Without those that another contains.
  [[nodiscard]] Members widest(const Members& rows) const {
    Members kept;
    const Ternaries& t = problem_.rows;
    for (const std::uint32_t row : rows) {
      if (kept.size() > kMostCovers) return kept;
      const bool inside = std::any_of(rows.begin(), rows.end(), [&](std::uint32_t other) {
        return other != row &&
               contains(t.value[other], t.mask[other], t.value[row], t.mask[row], words_);
      });
      if (!inside) kept.push_back(row);
    }
    return kept;
  }

  void add_parts(std::uint32_t row, const Members& flows) {
    std::map<std::pair<std::uint32_t, std::vector<Word>>, std::size_t> known;
    std::vector<std::uint32_t> tried;  // masks that did for other flows of this rule
    std::vector<Word> value(words_);
    for (std::size_t i = 0; i < std::min(flows.size(), kMostFlowsOfRule); ++i) {
      const Word* const packet = entering_.packets[found_.flows[flows[i]].packet];
      auto place = std::find_if(tried.begin(), tried.end(), [&](std::uint32_t mask) {
        return meets_no_blocker(packet, found_.masks[mask]);
      });
      if (place == tried.end()) place = tried.insert(place, number(cut_out(row, packet)));
      const std::vector<Word>& mask = found_.masks[*place];
      for (std::size_t w = 0; w < words_; ++w) value[w] = packet[w] & mask[w];
      const auto [at, fresh] = known.try_emplace({*place, value}, found_.pieces.size());
      if (fresh) found_.pieces.push_back({row, *place, {}, 0.0, false, {}});
      Piece& piece = found_.pieces[at->second];
      piece.flows.push_back(flows[i]);
      piece.weight += found_.flows[flows[i]].weight;
      piece.found_by[found_.flows[flows[i]].half] = true;
    }
  }

  [[nodiscard]] bool apart(const Word* packet, const Word* mask, std::uint32_t blocker) const {
    return !overlap(packet, mask, problem_.rows.value[blocker], problem_.rows.mask[blocker],
                    words_);
  }
  [[nodiscard]] bool meets_no_blocker(const Word* packet, const std::vector<Word>& mask) const {
    return std::all_of(blockers_.begin(), blockers_.end(),
                       [&](std::uint32_t blocker) { return apart(packet, mask.data(), blocker); });
  }

  /// The rule's mask with fields of blockers added, each time those that keep most of them away: few
  /// masks come of it, as blockers share theirs.
  [[nodiscard]] std::vector<Word> cut_out(std::uint32_t row, const Word* packet) const {
    std::vector<Word> mask = mask_of(problem_.rows, row);
    Members left;
    for (const std::uint32_t blocker : blockers_) {
      if (!apart(packet, mask.data(), blocker)) left.push_back(blocker);
    }
    std::map<std::vector<Word>, std::size_t> keeps_away;
    std::vector<Word> bits(words_);
    while (!left.empty()) {
      keeps_away.clear();
      for (const std::uint32_t blocker : left) {
        for (const std::vector<Word>& field : fields_) {
          Word differs = 0;
          for (std::size_t w = 0; w < words_; ++w) {
            bits[w] = problem_.rows.mask[blocker][w] & field[w];
            differs |= (problem_.rows.value[blocker][w] ^ packet[w]) & bits[w];
          }
          if (differs != 0) ++keeps_away[bits];
        }
      }
      const auto best =
          std::max_element(keeps_away.begin(), keeps_away.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      for (std::size_t w = 0; w < words_; ++w) mask[w] |= best->first[w];
      std::erase_if(left,
                    [&](std::uint32_t blocker) { return apart(packet, mask.data(), blocker); });
    }
    return mask;
  }

  std::uint32_t number(const std::vector<Word>& mask) {
    const auto [place, fresh] = number_of_.try_emplace(mask, found_.masks.size());
    if (fresh) found_.masks.push_back(mask);
    return static_cast<std::uint32_t>(place->second);
  }

  [[nodiscard]] double weight_of(const Members& flows) const {
    double sum = 0.0;
    for (const std::uint32_t flow : flows) sum += found_.flows[flow].weight;
    return sum;
  }

  const Problem& problem_;
  const Entering& entering_;
  Candidates& found_;
  std::size_t words_;
  std::vector<std::vector<Word>> fields_;
  Members blockers_;  ///< of the rule at hand
  ByMask<std::size_t> number_of_;
};

}  // namespace

Candidates find_candidates(const Problem& problem, const Entering& entering,
                           const std::vector<std::uint32_t>& decider, std::size_t most) {
  Candidates found;
  found.flows = flows_of(entering, decider);
  std::map<std::uint32_t, Members> flows_of_row;
  for (std::uint32_t i = 0; i < found.flows.size(); ++i) {
    Members& own = flows_of_row[found.flows[i].decider];
    found.flows[i].half = own.size() % 2;
    own.push_back(i);
  }
  Members rows;
  for (const auto& entry : flows_of_row) rows.push_back(entry.first);
  std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem.weight[a] > problem.weight[b];
  });
  rows.resize(std::min(rows.size(), most));
  Finder finder(problem, entering, found);
  for (const std::uint32_t row : rows) finder.add_rule(row, flows_of_row[row]);
  return found;
}

}  // namespace greynic::optimizer::split
