#include "src/joined/join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

#include "src/joined/pipeline.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kMostLookedInto = 2048;  ///< rules of a table that another is joined with

using joined::Cube;
using joined::Pipeline;
using joined::table_behind;

/// A rule as a row, and what became of it.
struct Piece {
  std::vector<Word> value;
  std::vector<Word> mask;
  std::vector<Action> actions;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> packets;  ///< that it decides, as numbers of arrivals
  std::vector<std::uint32_t> next;     ///< pieces in its place, first wins; itself when empty
};

class Joiner {
 public:
  Joiner(const RuleSet& rules, const Traffic& traffic, const JoinOptions& options)
      : options_(options), pipeline_(rules), words_(pipeline_.words()), room_(options.most_added) {
    for (const TrafficFlow& flow : traffic.flows) all_ += flow.weight;
    for (const TrafficFlow& flow : traffic.flows) {
      if (!pipeline_.tables().contains(flow.table)) continue;
      Arrivals& here = arrivals_.try_emplace(flow.table, Arrivals{Rows(words_), {}}).first->second;
      pipeline_.columns().pack(flow.packet, here.packets.add());
      here.share.push_back(flow.weight / all_);
    }
  }

  JoinedRules run() {
    const std::vector<FlowRule>& given = pipeline_.rules().rules;
    JoinedRules made{{{}, pipeline_.rules().source}, 0};
    const auto order = pipeline_.order();
    if (!order) return made;
    common_ = pipeline_.common_of_added(*order, options_.first_added);
    with_misses_ = pipeline_.added_with_misses(*order, options_.first_added);
    std::map<std::uint32_t, std::vector<FlowRule>> changed;
    for (const std::uint32_t id : *order) {
      const std::size_t before = joins_;
      auto rules = joined(id);
      if (joins_ > before) changed.emplace(id, std::move(rules));
    }
    for (const auto& [id, members] : pipeline_.tables()) {
      if (const auto found = changed.find(id); found != changed.end()) {
        made.rules.rules.insert(made.rules.rules.end(), found->second.begin(), found->second.end());
        continue;
      }
      for (const std::uint32_t rule : members) made.rules.rules.push_back(given[rule]);
    }
    made.joins = joins_;
    return made;
  }

 private:
  struct Arrivals {
    Rows packets;
    std::vector<double> share;
  };
  struct Choice {
    double worth = 0.0;  ///< share of the packets for each rule more
    std::size_t added = 0;
    std::uint32_t piece = 0;
    bool operator<(const Choice& other) const {
      return worth != other.worth ? worth < other.worth : piece > other.piece;
    }
  };
  std::vector<FlowRule> joined(std::uint32_t id) {
    pieces_.clear();
    choices_ = {};
    arrived_ = arrivals_.contains(id) ? &arrivals_.at(id) : nullptr;
    within_ = common_.contains(id) ? &common_.at(id) : nullptr;
    const Ternaries& rows = pipeline_.rows(id);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const FlowRule& rule = pipeline_.rule(id, row);
      pieces_.push_back({{rows.value[row], rows.value[row] + words_},
                         {rows.mask[row], rows.mask[row] + words_},
                         rule.actions,
                         rule.from,
                         {},
                         {}});
    }
    if (arrived_ != nullptr) {
      const auto hits = first_matches(rows, arrived_->packets);
      for (std::uint32_t i = 0; i < hits.size(); ++i) {
        if (hits[i] != kNoRow) pieces_[hits[i]].packets.push_back(i);
      }
    }
    if (rows.size() <= kMostLookedInto) {
      for (std::uint32_t piece = 0; piece < rows.size(); ++piece) consider(piece);
    }
    while (!choices_.empty()) {
      const Choice best = choices_.top();
      choices_.pop();
      if (best.added > room_) continue;
      room_ -= best.added;
      open(best.piece);
    }
    std::vector<FlowRule> rules;
    for (std::uint32_t piece = 0; piece < rows.size(); ++piece) write(piece, id, rules);
    send_on();
    arrivals_.erase(id);
    return rules;
  }

  /// The table that the piece can be joined with.
  [[nodiscard]] std::optional<std::uint32_t> joinable(const Piece& piece) const {
    return pipeline_.next(piece.actions, kMostLookedInto);
  }

  /// As Pipeline::for_each_behind, for all packets that hit the piece.
  template <typename Visit>
  void for_each_behind(const Piece& piece, std::uint32_t id, const Visit& visit) const {
    const Cube cube{piece.value, piece.mask};
    pipeline_.for_each_behind(id, cube, within_ == nullptr ? cube : both(cube, *within_),
                              pipeline_.written(piece.actions), visit);
  }

  void consider(std::uint32_t number) {
    const Piece& piece = pieces_[number];
    const auto id = joinable(piece);
    if (!id || arrived_ == nullptr) return;
    double share = 0.0;
    for (const std::uint32_t packet : piece.packets) share += arrived_->share[packet];
    std::size_t found = 0;
    std::size_t missed = 0;
    bool acts_on_its_way = false;  // to a table that only the layout has
    bool misses = false;           // in such a table, for the one behind
    for_each_behind(piece, *id, [&](std::uint32_t row, const auto&, const auto&) {
      ++(row == kNoRow ? missed : found);
      if (row == kNoRow) return;
      const std::int64_t next = table_behind(pipeline_.rule(*id, row).actions);
      if (next < std::int64_t{options_.first_added}) return;
      acts_on_its_way = acts_on_its_way || piece.actions.size() > 1;
      misses = misses || (*id < options_.first_added &&
                          with_misses_.contains(static_cast<std::uint32_t>(next)));
    });
    if (found == 0 || acts_on_its_way || misses) return;
    const std::size_t added = found + missed - 1;
    if (added > 0 && within_ != nullptr) return;  // many tables of classes would have it
    const double worth = added == 0 ? 1.0 : share / static_cast<double>(added);
    if (worth >= options_.least_share) choices_.push({worth, added, number});
  }

  void open(std::uint32_t number) {
    ++joins_;
    const Piece piece = pieces_[number];
    const std::uint32_t id = *joinable(piece);
    std::vector<std::uint32_t> next;
    for_each_behind(
        piece, id,
        [&](std::uint32_t row, const std::vector<Word>& value, const std::vector<Word>& mask) {
          next.push_back(static_cast<std::uint32_t>(pieces_.size()));
          pieces_.push_back({value, mask, piece.actions, piece.from, {}, {}});
          if (row == kNoRow) return;
          const FlowRule& rule = pipeline_.rule(id, row);
          Piece& made = pieces_.back();
          made.actions = joined::followed_by(std::move(made.actions), rule.actions);
          made.from.insert(made.from.end(), rule.from.begin(), rule.from.end());
        });
    for (const std::uint32_t packet : piece.packets) {
      const Word* const row = arrived_->packets[packet];
      for (const std::uint32_t part : next) {
        Piece& taken = pieces_[part];
        if (!matches(taken.value.data(), taken.mask.data(), row, words_)) continue;
        taken.packets.push_back(packet);
        break;
      }
    }
    pieces_[number].next = next;
    pieces_[number].packets.clear();
    for (const std::uint32_t part : next) {
      // What missed there is not asked again.
      if (pieces_[part].actions != piece.actions) consider(part);
    }
  }

  void write(std::uint32_t number, std::uint32_t id, std::vector<FlowRule>& rules) const {
    const Piece& piece = pieces_[number];
    for (const std::uint32_t part : piece.next) write(part, id, rules);
    if (!piece.next.empty()) return;
    FlowRule rule;
    rule.match = pipeline_.columns().unpack(piece.value.data(), piece.mask.data());
    rule.priority = static_cast<RulePriority>(rules.size());
    rule.table = id;
    rule.actions = piece.actions;
    rule.from = piece.from;
    std::sort(rule.from.begin(), rule.from.end());
    rule.from.erase(std::unique(rule.from.begin(), rule.from.end()), rule.from.end());
    rules.push_back(std::move(rule));
  }

  /// Packets that jump on arrive elsewhere.
  void send_on() {
    if (arrived_ == nullptr) return;
    for (const Piece& piece : pieces_) {
      const std::int64_t behind = table_behind(piece.actions);
      const auto id = static_cast<std::uint32_t>(behind);
      if (piece.packets.empty() || behind < 0 || !pipeline_.tables().contains(id)) continue;
      Arrivals& there = arrivals_.try_emplace(id, Arrivals{Rows(words_), {}}).first->second;
      const Cube set = pipeline_.written(piece.actions);
      for (const std::uint32_t packet : piece.packets) {
        Word* const to = there.packets.add();
        const Word* const was = arrived_->packets[packet];
        for (std::size_t w = 0; w < words_; ++w) {
          to[w] = (was[w] & ~set.mask[w]) | set.value[w];
        }
        there.share.push_back(arrived_->share[packet]);
      }
    }
  }

  const JoinOptions& options_;
  const Pipeline pipeline_;
  const std::size_t words_;
  std::size_t room_;
  double all_ = 0.0;
  std::map<std::uint32_t, Arrivals> arrivals_;
  std::size_t joins_ = 0;
  std::set<std::uint32_t> with_misses_;  ///< tables of the layout alone
  std::map<std::uint32_t, Cube>
      common_;  ///< of the packets that come to tables of the layout alone
  // Of the table at hand:
  std::vector<Piece> pieces_;
  std::priority_queue<Choice> choices_;
  const Arrivals* arrived_ = nullptr;
  const Cube* within_ = nullptr;  ///< what its packets have in common
};

}  // namespace

JoinedRules join_tables(const RuleSet& rules, const Traffic& traffic, const JoinOptions& options) {
  return Joiner(rules, traffic, options).run();
}

}  // namespace greynic::optimizer
