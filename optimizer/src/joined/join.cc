#include "src/joined/join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

#include "src/problem.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kMostLookedInto = 2048;  ///< rules of a table that another is joined with
constexpr std::size_t kMostActions =
    64;  ///< of a rule that is written out, once for each behind it

bool is_jump(const Action& action) { return action.kind == ActionKind::kJump; }

/// What these do to a packet is known.
bool is_clear(const Action& action) {
  return action.kind == ActionKind::kSetField || action.kind == ActionKind::kForward ||
         action.kind == ActionKind::kCount;
}

/// A rule as a row, and what became of it.
struct Piece {
  std::vector<Word> value;
  std::vector<Word> mask;
  std::vector<Action> actions;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> packets;  ///< that it decides, as numbers of arrivals
  std::vector<std::uint32_t> next;     ///< pieces in its place, first wins; itself when empty
};

/// The table that a rule jumps to as its last action; -1: none, or not only there.
std::int64_t table_behind(const std::vector<Action>& actions) {
  if (actions.empty() || !is_jump(actions.back())) return -1;
  if (std::ranges::count_if(actions, is_jump) != 1) return -1;
  return static_cast<std::int64_t>(actions.back().number);
}

class Joiner {
 public:
  Joiner(const RuleSet& rules, const Traffic& traffic, const JoinOptions& options)
      : rules_(rules),
        options_(options),
        tables_(rules_by_table(rules)),
        columns_(all_bits(rules, every(rules))),
        words_(columns_.words()),
        room_(options.most_added) {
    for (const TrafficFlow& flow : traffic.flows) all_ += flow.weight;
    for (const TrafficFlow& flow : traffic.flows) {
      if (!tables_.contains(flow.table)) continue;
      Arrivals& here = arrivals_.try_emplace(flow.table, Arrivals{Rows(words_), {}}).first->second;
      columns_.pack(flow.packet, here.packets.add());
      here.share.push_back(flow.weight / all_);
    }
    for (const auto& [id, members] : tables_) {
      Ternaries& rows = rows_.try_emplace(id, Ternaries(words_)).first->second;
      for (const std::uint32_t rule : members) {
        columns_.pack(rules.rules[rule].match, rows.value.add(), rows.mask.add());
      }
    }
  }

  JoinedRules run() {
    JoinedRules made{{{}, rules_.source}, 0};
    if (!find_order()) return made;
    std::map<std::uint32_t, std::vector<FlowRule>> changed;
    for (const std::uint32_t id : order_) {
      const std::size_t before = joins_;
      auto rules = joined(id);
      if (joins_ > before) changed.emplace(id, std::move(rules));
    }
    for (const auto& [id, members] : tables_) {
      if (const auto found = changed.find(id); found != changed.end()) {
        made.rules.rules.insert(made.rules.rules.end(), found->second.begin(), found->second.end());
        continue;
      }
      for (const std::uint32_t rule : members) made.rules.rules.push_back(rules_.rules[rule]);
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
  /// Bits that the actions set.
  struct Written {
    std::vector<Word> value;
    std::vector<Word> mask;
  };

  static std::vector<std::uint32_t> every(const RuleSet& rules) {
    std::vector<std::uint32_t> all(rules.rules.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  /// Each table before those that it leads to; false where jumps lead in a circle.
  bool find_order() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> leads_to;
    for (const auto& [id, members] : tables_) {
      auto& to = leads_to[id];
      for (const std::uint32_t rule : members) {
        for (const Action& action : rules_.rules[rule].actions) {
          const auto target = static_cast<std::uint32_t>(action.number);
          if (is_jump(action) && tables_.contains(target)) to.push_back(target);
        }
      }
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    }
    enum class State : std::uint8_t { kNew, kOpen, kDone };
    std::map<std::uint32_t, State> state;
    std::vector<std::pair<std::uint32_t, std::size_t>> way;
    for (const auto& entry : tables_) {
      if (state[entry.first] == State::kDone) continue;
      way.emplace_back(entry.first, 0);
      while (!way.empty()) {
        auto& [id, at] = way.back();
        state[id] = State::kOpen;
        if (at == leads_to[id].size()) {
          state[id] = State::kDone;
          order_.push_back(id);
          way.pop_back();
          continue;
        }
        const std::uint32_t target = leads_to[id][at++];
        if (state[target] == State::kOpen) return false;
        if (state[target] == State::kNew) way.emplace_back(target, 0);
      }
    }
    std::reverse(order_.begin(), order_.end());
    find_common();
    return true;
  }

  /// To tables of the layout alone packets come by its rules' jumps, and nothing else is done on the way.
  void find_common() {
    for (const std::uint32_t id : order_) {
      const auto here = common_.find(id);
      const std::vector<std::uint32_t>& members = tables_.at(id);
      for (std::uint32_t row = 0; row < members.size(); ++row) {
        const std::int64_t to = table_behind(rules_.rules[members[row]].actions);
        if (to < std::int64_t{options_.first_added}) continue;
        const Ternaries& rows = rows_.at(id);
        Written cube{{rows.value[row], rows.value[row] + words_},
                     {rows.mask[row], rows.mask[row] + words_}};
        for (std::size_t w = 0; w < words_ && here != common_.end(); ++w) {
          cube.value[w] |= here->second.value[w] & ~cube.mask[w];
          cube.mask[w] |= here->second.mask[w];
        }
        const auto [known, fresh] = common_.try_emplace(static_cast<std::uint32_t>(to), cube);
        for (std::size_t w = 0; w < words_ && !fresh; ++w) {
          Written& common = known->second;
          common.mask[w] &= cube.mask[w] & ~(common.value[w] ^ cube.value[w]);
          common.value[w] &= common.mask[w];
        }
      }
    }
  }

  std::vector<FlowRule> joined(std::uint32_t id) {
    pieces_.clear();
    choices_ = {};
    arrived_ = arrivals_.contains(id) ? &arrivals_.at(id) : nullptr;
    within_ = common_.contains(id) ? &common_.at(id) : nullptr;
    const auto& members = tables_.at(id);
    const Ternaries& rows = rows_.at(id);
    for (std::uint32_t row = 0; row < members.size(); ++row) {
      const FlowRule& rule = rules_.rules[members[row]];
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
    if (members.size() <= kMostLookedInto) {
      for (std::uint32_t piece = 0; piece < members.size(); ++piece) consider(piece);
    }
    while (!choices_.empty()) {
      const Choice best = choices_.top();
      choices_.pop();
      if (best.added > room_) continue;
      room_ -= best.added;
      open(best.piece);
    }
    std::vector<FlowRule> rules;
    for (std::uint32_t piece = 0; piece < members.size(); ++piece) write(piece, id, rules);
    send_on();
    arrivals_.erase(id);
    return rules;
  }

  [[nodiscard]] Written written(const std::vector<Action>& actions) const {
    Match match;
    for (const Action& action : actions) {
      if (action.kind != ActionKind::kSetField) continue;
      U128 value = action.value & action.bits;
      U128 bits = action.bits;
      for (const FieldMatch& part : match.fields()) {
        if (part.field != action.field) continue;
        value |= part.value & ~action.bits;
        bits |= part.bits;
      }
      match.set(action.field, value, bits);
    }
    Written result{std::vector<Word>(words_, 0), std::vector<Word>(words_, 0)};
    columns_.pack(match, result.value.data(), result.mask.data());
    return result;
  }

  /// The table that the piece can be joined with.
  [[nodiscard]] std::optional<std::uint32_t> joinable(const Piece& piece) const {
    const std::int64_t behind = table_behind(piece.actions);
    const auto id = static_cast<std::uint32_t>(behind);
    if (behind < 0 || !tables_.contains(id) || tables_.at(id).size() > kMostLookedInto ||
        piece.actions.size() > kMostActions) {
      return std::nullopt;
    }
    const Word* const first = rows_.at(id).mask[0];
    const bool takes_all = std::all_of(first, first + words_, [](Word word) { return word == 0; });
    const bool clear = std::all_of(piece.actions.begin(), piece.actions.end() - 1, is_clear);
    return takes_all || clear ? std::optional(id) : std::nullopt;
  }

  /// Calls visit(row, value, mask) for each row of the next table that packets of the piece may hit,
  /// with what they then have in common; the last is kNoRow where some may miss.
  template <typename Visit>
  void for_each_behind(const Piece& piece, std::uint32_t id, const Visit& visit) const {
    const Ternaries& rows = rows_.at(id);
    const Written set = written(piece.actions);
    Written held{piece.value, piece.mask};  // of all packets that hit the piece
    for (std::size_t w = 0; w < words_ && within_ != nullptr; ++w) {
      held.value[w] |= within_->value[w] & ~held.mask[w];
      held.mask[w] |= within_->mask[w];
    }
    std::vector<Word> value(words_);
    std::vector<Word> mask(words_);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const Word* const v = rows.value[row];
      const Word* const m = rows.mask[row];
      bool meets = true;
      bool all = true;
      for (std::size_t w = 0; w < words_ && meets; ++w) {
        const Word asked = m[w] & ~set.mask[w];
        meets = ((v[w] ^ set.value[w]) & m[w] & set.mask[w]) == 0 &&
                ((v[w] ^ held.value[w]) & asked & held.mask[w]) == 0;
        const Word more = asked & ~held.mask[w];
        all = all && more == 0;
        value[w] = piece.value[w] | (v[w] & more);
        mask[w] = piece.mask[w] | more;
      }
      if (!meets) continue;
      visit(row, value, mask);
      if (all) return;
    }
    visit(kNoRow, piece.value, piece.mask);
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
    for_each_behind(piece, *id, [&](std::uint32_t row, const auto&, const auto&) {
      ++(row == kNoRow ? missed : found);
      if (row == kNoRow || piece.actions.size() == 1) return;
      const std::int64_t next = table_behind(rules_.rules[tables_.at(*id)[row]].actions);
      acts_on_its_way = acts_on_its_way || next >= std::int64_t{options_.first_added};
    });
    if (found == 0 || acts_on_its_way) return;
    const std::size_t added = found + missed - 1;
    if (added > 0 && within_ != nullptr) return;  // many tables of classes would have it
    const double worth = added == 0 ? 1.0 : share / static_cast<double>(added);
    if (worth >= options_.least_share) choices_.push({worth, added, number});
  }

  void open(std::uint32_t number) {
    ++joins_;
    const Piece piece = pieces_[number];
    const std::uint32_t id = *joinable(piece);
    const auto& members = tables_.at(id);
    std::vector<std::uint32_t> next;
    for_each_behind(
        piece, id,
        [&](std::uint32_t row, const std::vector<Word>& value, const std::vector<Word>& mask) {
          next.push_back(static_cast<std::uint32_t>(pieces_.size()));
          pieces_.push_back({value, mask, piece.actions, piece.from, {}, {}});
          if (row == kNoRow) return;
          const FlowRule& rule = rules_.rules[members[row]];
          Piece& made = pieces_.back();
          made.actions.pop_back();
          const bool drops = rule.actions.size() == 1 && rule.actions.front() == Action::drop();
          if (!drops || made.actions.empty()) {
            made.actions.insert(made.actions.end(), rule.actions.begin(), rule.actions.end());
          }
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
    rule.match = columns_.unpack(piece.value.data(), piece.mask.data());
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
      if (piece.packets.empty() || behind < 0 || !tables_.contains(id)) continue;
      Arrivals& there = arrivals_.try_emplace(id, Arrivals{Rows(words_), {}}).first->second;
      const Written set = written(piece.actions);
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

  const RuleSet& rules_;
  const JoinOptions& options_;
  const RulesOfTable tables_;
  const Columns columns_;
  const std::size_t words_;
  std::size_t room_;
  double all_ = 0.0;
  std::map<std::uint32_t, Ternaries> rows_;
  std::map<std::uint32_t, Arrivals> arrivals_;
  std::vector<std::uint32_t> order_;
  std::size_t joins_ = 0;
  std::map<std::uint32_t, Written>
      common_;  ///< of the packets that come to tables of the layout alone
  // Of the table at hand:
  std::vector<Piece> pieces_;
  std::priority_queue<Choice> choices_;
  const Arrivals* arrived_ = nullptr;
  const Written* within_ = nullptr;  ///< what its packets have in common
};

}  // namespace

JoinedRules join_tables(const RuleSet& rules, const Traffic& traffic, const JoinOptions& options) {
  return Joiner(rules, traffic, options).run();
}

}  // namespace greynic::optimizer
