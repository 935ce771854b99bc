#include "src/split/choose.h"

#include <algorithm>
#include <queue>
#include <set>

#include "src/key_table.h"

namespace greynic::optimizer::split {
namespace {

enum class Kind : std::uint8_t { kFlow, kPiece, kCovered };

struct Unit {
  double worth = 0.0;  ///< saved for each entry, when it was last looked at
  Kind kind = Kind::kFlow;
  std::uint32_t place = 0;
  bool operator<(const Unit& other) const {
    if (worth != other.worth) return worth < other.worth;
    if (kind != other.kind) return kind > other.kind;
    return place > other.place;
  }
};

/// Takes what is worth most, again and again. What was taken lowers the worth of what shares flows
/// with it, so a unit is looked at again when its turn comes.
class Chooser {
 public:
  Chooser(const Problem& problem, const Candidates& candidates, const Choosing& choosing)
      : problem_(problem),
        candidates_(candidates),
        choosing_(choosing),
        decided_(candidates.flows.size(), false),
        new_decided_(candidates.flows.size(), false),
        weight_of_mask_(candidates.masks.size(), 0.0) {
    for (std::uint32_t i = 0; i < candidates.masks.size(); ++i)
      mask_number_[candidates.masks[i]] = i;
    for (const Piece& piece : candidates.pieces) weight_of_mask_[piece.mask] += piece.weight;
    for (const Flow& flow : candidates.flows) left_ += flow.weight;
    all_flows_ = left_;
  }

  Chosen run() {
    std::priority_queue<Unit> units;
    const auto offer = [&](Kind kind, std::size_t place) {
      Unit unit{0.0, kind, static_cast<std::uint32_t>(place)};
      unit.worth = worth(unit);
      if (unit.worth > 0.0) units.push(unit);
    };
    for (std::size_t i = 0; i < candidates_.pieces.size(); ++i) offer(Kind::kPiece, i);
    if (choosing_.hyper) {
      const std::size_t hottest = std::min(candidates_.flows.size(), choosing_.entries);
      for (std::size_t i = 0; i < hottest; ++i) offer(Kind::kFlow, i);
    }
    if (choosing_.covers) {
      for (std::size_t i = 0; i < candidates_.covered.size(); ++i) offer(Kind::kCovered, i);
    }
    while (!units.empty() && taken_ < choosing_.entries) {
      Unit unit = units.top();
      units.pop();
      const double now = worth(unit);
      if (now < unit.worth * (1.0 - 1e-12)) {
        unit.worth = now;
        if (now > 0.0) units.push(unit);
        continue;
      }
      if (taken_ + entries(unit) <= choosing_.entries) take(unit);
    }
    for (const std::uint32_t row : covers_) {
      if (!rows_.contains(row)) chosen_.covers.push_back(row);
    }
    chosen_.rows.assign(rows_.begin(), rows_.end());
    for (std::size_t i = 0; i < candidates_.flows.size() && all_flows_ > 0.0; ++i) {
      const double share = candidates_.flows[i].weight / all_flows_;
      chosen_.slow_seen += decided_[i] ? 0.0 : share;
      chosen_.slow_new += new_decided_[i] ? 0.0 : share;
    }
    return std::move(chosen_);
  }

 private:
  /// Whether packets of flows like this one, which nobody has seen, are in the piece.
  [[nodiscard]] bool tells_of_new(const Piece& piece, std::uint32_t flow) const {
    return piece.whole || piece.found_by[1 - candidates_.flows[flow].half];
  }

  /// Weight that is not decided yet; `counts` says of which flows new ones are in, too.
  template <typename Counts>
  [[nodiscard]] double undecided(const std::vector<std::uint32_t>& flows,
                                 const Counts& counts) const {
    double sum = 0.0;
    for (const std::uint32_t flow : flows) {
      const double weight = candidates_.flows[flow].weight;
      if (!decided_[flow]) sum += (1.0 - choosing_.new_flows) * weight;
      if (!new_decided_[flow] && counts(flow)) sum += choosing_.new_flows * weight;
    }
    return sum;
  }

  [[nodiscard]] std::size_t entries(const Unit& unit) const {
    if (unit.kind != Kind::kCovered) return 1;
    std::size_t needed = 1;
    for (const std::uint32_t row : candidates_.covered[unit.place].covers) {
      needed += covers_.contains(row) || rows_.contains(row) ? 0 : 1;
    }
    return needed;
  }

  /// What all packets that come by pay for a matcher, as far as this share of it goes.
  [[nodiscard]] double charged(double share) const {
    return choosing_.matcher_price * left_ * std::min(1.0, share);
  }
  [[nodiscard]] double charged_for_row(std::uint32_t row) const {
    return open_rows_.contains(mask_of(problem_.rows, row)) ? 0.0 : charged(1.0);
  }

  [[nodiscard]] double worth(const Unit& unit) const {
    switch (unit.kind) {
      case Kind::kFlow: {
        if (decided_[unit.place]) return 0.0;
        const double weight = (1.0 - choosing_.new_flows) * candidates_.flows[unit.place].weight;
        return weight * choosing_.slow_path -
               (chosen_.flows.empty() ? charged(weight / all_flows_) : 0.0);
      }
      case Kind::kPiece: {
        const Piece& piece = candidates_.pieces[unit.place];
        const double weight =
            undecided(piece.flows, [&](std::uint32_t flow) { return tells_of_new(piece, flow); });
        return weight * choosing_.slow_path -
               (open_.contains(piece.mask) ? 0.0 : charged(weight / weight_of_mask_[piece.mask]));
      }
      case Kind::kCovered: {
        const Covered& covered = candidates_.covered[unit.place];
        const auto everything = [](std::uint32_t) { return true; };
        double gain = undecided(covered.flows, everything) * choosing_.slow_path -
                      charged_for_row(covered.row);
        for (const std::uint32_t row : covered.covers) {
          if (!covers_.contains(row) && !rows_.contains(row)) gain -= charged_for_row(row);
        }
        return gain / static_cast<double>(entries(unit));
      }
    }
    return 0.0;
  }

  template <typename Counts>
  void decide(const std::vector<std::uint32_t>& flows, const Counts& counts) {
    for (const std::uint32_t flow : flows) {
      const double weight = candidates_.flows[flow].weight;
      if (!decided_[flow]) left_ -= (1.0 - choosing_.new_flows) * weight;
      decided_[flow] = true;
      if (new_decided_[flow] || !counts(flow)) continue;
      new_decided_[flow] = true;
      left_ -= choosing_.new_flows * weight;
    }
  }

  void open(std::uint32_t row) {
    const auto mask = mask_of(problem_.rows, row);
    open_rows_.insert(mask);
    const auto known = mask_number_.find(mask);
    if (known != mask_number_.end()) open_.insert(known->second);
  }

  void take(const Unit& unit) {
    taken_ += entries(unit);
    if (unit.kind == Kind::kFlow) {
      chosen_.flows.push_back(unit.place);
      decide({unit.place}, [](std::uint32_t) { return false; });
      return;
    }
    if (unit.kind == Kind::kPiece) {
      const Piece& piece = candidates_.pieces[unit.place];
      chosen_.pieces.push_back(unit.place);
      open_.insert(piece.mask);
      open_rows_.insert(candidates_.masks[piece.mask]);
      decide(piece.flows, [&](std::uint32_t flow) { return tells_of_new(piece, flow); });
      return;
    }
    const Covered& covered = candidates_.covered[unit.place];
    rows_.insert(covered.row);
    open(covered.row);
    for (const std::uint32_t row : covered.covers) {
      covers_.insert(row);
      open(row);
    }
    decide(covered.flows, [](std::uint32_t) { return true; });
  }

  const Problem& problem_;
  const Candidates& candidates_;
  const Choosing& choosing_;
  std::vector<bool> decided_;           ///< by flow
  std::vector<bool> new_decided_;       ///< by flow: new flows like it are
  std::vector<double> weight_of_mask_;  ///< of all its pieces
  ByMask<std::uint32_t> mask_number_;
  std::set<std::vector<Word>> open_rows_;  ///< masks that have a matcher
  std::set<std::uint32_t> open_;           ///< the same, of the candidates' masks
  std::set<std::uint32_t> rows_;
  std::set<std::uint32_t> covers_;
  double left_ = 0.0;  ///< weight of the flows that go to the slow path so far
  double all_flows_ = 0.0;
  std::size_t taken_ = 0;
  Chosen chosen_;
};

}  // namespace

Chosen choose(const Problem& problem, const Candidates& candidates, const Choosing& choosing) {
  return Chooser(problem, candidates, choosing).run();
}

}  // namespace greynic::optimizer::split
