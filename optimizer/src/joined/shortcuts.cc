#include "src/joined/shortcuts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/joined/arrivals_by_rule.h"
#include "src/joined/pipeline.h"
#include "src/joined/residue.h"

namespace greynic::optimizer {
namespace {

using joined::Arrivals;
using joined::Cube;
using joined::Deeds;
using joined::Follower;
using joined::Pipeline;
using joined::Residue;
using joined::Rest;
using joined::table_behind;

constexpr std::size_t kMostLeft = 48;  ///< rules of a table that leads around others

class Shortening {
 public:
  Shortening(const RuleSet& rules, const Traffic& traffic, const ShortcutOptions& options)
      : pipeline_(rules),
        options_(options),
        order_(pipeline_.order()),
        deeds_(pipeline_, options.first_added,
               order_ ? pipeline_.added_with_misses(*order_, options.first_added)
                      : std::set<std::uint32_t>()),
        next_id_(options.first_free),
        room_(options.most_added) {
    if (order_) arrivals_ = joined::arrivals_by_rule(pipeline_, traffic, options.first_added);
  }

  ShortcutRules run() {
    if (!order_) return {pipeline_.rules(), 0};
    for (std::size_t i = 0; i < order_->size(); ++i) ranks_[(*order_)[i]] = i;
    find_entrances();
    for (const auto& [id, entrances] : entrances_) shorten(id, entrances);
    return made();
  }

 private:
  using Origins = std::vector<std::vector<std::uint32_t>>;  ///< rules of the set, by rest

  /// What a table that leads around others asks and does.
  using Content = std::vector<std::pair<Cube, std::uint32_t>>;
  struct Around {
    std::uint32_t id = 0;
    Origins origins;
  };
  struct Changed {
    std::uint32_t deed = 0;
    std::vector<std::uint32_t> origins;
  };
  /// What all entrances of a table leave of an entry's packets.
  struct Left {
    Residue residue;
    Origins origins;
    std::vector<std::size_t> passed;  ///< tables, by rest; of the entrance that passes fewest
    /// Visits of tables; of the first entrance alone when the residue is none. Less is saved before earlier tables.
    double saved = 0.0;
  };

  /// What is known of the packets of each rule that leads to a table of the layout alone.
  void find_entrances() {
    for (const auto& [id, members] : pipeline_.tables()) {
      for (std::uint32_t row = 0; row < members.size(); ++row) {
        const std::int64_t to = table_behind(pipeline_.rule(id, row).actions);
        if (to < std::int64_t{options_.first_added}) continue;
        entrances_[static_cast<std::uint32_t>(to)].insert(pipeline_.cube(id, row));
      }
    }
  }

  void shorten(std::uint32_t id, const std::set<Cube>& entrances) {
    if (!pipeline_.tables().contains(id)) return;
    std::vector<Follower> followers;
    for (const Cube& entrance : entrances) {
      followers.emplace_back(pipeline_, ranks_, deeds_, entrance);
    }
    for (std::uint32_t row = 0; row < pipeline_.size(id); ++row) {
      const auto arrived = arrivals_.find({id, row});
      if (arrived != arrivals_.end()) lead_around(id, row, followers, arrived->second);
    }
  }

  /// Followed up to tables of a rank; nothing where entrances leave something else each. `odd`: the one that
  /// was found different last, which is asked early.
  Left left_by_all(const Cube& cube, std::uint32_t deed, std::size_t end,
                   std::vector<Follower>& followers, const Arrivals& arrived, std::size_t& odd) {
    Left left;
    Residue first;  // with what is needless
    std::vector<std::size_t> needed;
    for (std::size_t i = 0; i < followers.size(); ++i) {
      const std::size_t asked = i == 0 ? 0 : i == 1 ? odd : i == odd ? 1 : i;
      const Residue here = followers[asked].follow(cube, deed, end);
      if (i == 0 || !joined::alike(first, here)) {
        needed = joined::needed(here);
        Residue residue;
        for (const std::size_t place : needed) residue.push_back(here[place]);
        if (residue.empty() || residue.size() > kMostLeft ||
            (i > 0 && !joined::alike(left.residue, residue))) {
          odd = std::max<std::size_t>(1, asked);
          if (i == 0) left.saved = 1.0;  // not known: too much is left
          left.residue.clear();
          return left;
        }
        left.residue = std::move(residue);
        first = here;
      }
      left.origins.resize(needed.size());
      left.passed.resize(needed.size(), pipeline_.tables().size());
      for (std::size_t r = 0; r < needed.size(); ++r) {
        const std::vector<std::uint32_t>& rules = here[needed[r]].rules;
        left.origins[r].insert(left.origins[r].end(), rules.begin(), rules.end());
        left.passed[r] = std::min(left.passed[r], rules.size());
      }
      left.saved = i == 0 ? saved_by(left, arrived) : left.saved;
      if (!(left.saved > 0.0)) return {};
    }
    for (std::vector<std::uint32_t>& rules : left.origins) {
      std::ranges::sort(rules);
      rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
    }
    left.saved = saved_by(left, arrived);
    return left;
  }

  /// Visits of tables that the packets are spared.
  [[nodiscard]] double saved_by(const Left& left, const Arrivals& arrived) const {
    const double own = left.residue.size() > 1 ? 1.0 : 0.0;
    double saved = 0.0;
    for (std::size_t p = 0; p < arrived.share.size(); ++p) {
      const auto hit = std::ranges::find_if(left.residue, [&](const Rest& rest) {
        return matches(rest.cube.value.data(), rest.cube.mask.data(), arrived.packets[p],
                       pipeline_.words());
      });
      if (hit == left.residue.end()) continue;
      const auto place = static_cast<std::size_t>(hit - left.residue.begin());
      saved += arrived.share[p] * (static_cast<double>(left.passed[place]) - own);
    }
    return saved;
  }

  void lead_around(std::uint32_t id, std::uint32_t row, std::vector<Follower>& followers,
                   const Arrivals& arrived) {
    const std::uint32_t deed = deeds_.number(pipeline_.rule(id, row).actions);
    if (!deeds_[deed].next) return;
    const Cube cube = pipeline_.cube(id, row);
    std::size_t odd = 1;
    // As far as all entrances leave the same.
    Left left = left_by_all(cube, deed, ranks_.size(), followers, arrived, odd);
    const std::set<std::size_t> ends = followers.front().ranks_met();
    for (auto end = ends.rbegin(); left.residue.empty() && end != ends.rend(); ++end) {
      if (!(left.saved > 0.0)) return;
      left = left_by_all(cube, deed, *end, followers, arrived, odd);
    }
    if (left.residue.empty() || !(left.saved > 0.0)) return;
    const std::uint32_t index = pipeline_.tables().at(id)[row];
    if (left.residue.size() == 1) {
      changed_[index] = {left.residue.front().deed, std::move(left.origins.front())};
    } else if (Around* const around = table_for(left.residue, left.saved); around != nullptr) {
      for (std::size_t r = 0; r < left.origins.size(); ++r) {
        std::vector<std::uint32_t> all;
        std::ranges::set_union(around->origins[r], left.origins[r], std::back_inserter(all));
        around->origins[r] = std::move(all);
      }
      changed_[index] = {deeds_.number({Action::jump(around->id)}), {}};
    }
  }

  /// None where it is new, and not worth it.
  Around* table_for(const Residue& residue, double saved) {
    Content content;
    for (const Rest& rest : residue) content.emplace_back(rest.cube, rest.deed);
    if (const auto known = around_.find(content); known != around_.end()) return &known->second;
    if (saved < options_.least_share * static_cast<double>(residue.size()) ||
        residue.size() > room_ || next_id_ > options_.last_table) {
      return nullptr;
    }
    room_ -= residue.size();
    return &around_.emplace(std::move(content), Around{next_id_++, Origins(residue.size())})
                .first->second;
  }

  [[nodiscard]] ShortcutRules made() const {
    ShortcutRules made{pipeline_.rules(), changed_.size()};
    for (const auto& [index, changed] : changed_) {
      FlowRule& rule = made.rules.rules[index];
      rule.actions = deeds_[changed.deed].actions;
      add_lines(changed.origins, rule.from);
    }
    for (const auto& [content, around] : around_) {
      for (std::size_t i = 0; i < content.size(); ++i) {
        const auto& [cube, deed] = content[i];
        FlowRule rule;
        rule.match = pipeline_.columns().unpack(cube.value.data(), cube.mask.data());
        rule.priority = static_cast<RulePriority>(i);
        rule.table = around.id;
        rule.actions = deeds_[deed].actions;
        add_lines(around.origins[i], rule.from);
        made.rules.rules.push_back(std::move(rule));
      }
    }
    return made;
  }

  void add_lines(const std::vector<std::uint32_t>& origins,
                 std::vector<std::uint32_t>& lines) const {
    std::set<std::uint32_t> all(lines.begin(), lines.end());
    for (const std::uint32_t rule : origins) {
      const std::vector<std::uint32_t>& from = pipeline_.rules().rules[rule].from;
      all.insert(from.begin(), from.end());
    }
    lines.assign(all.begin(), all.end());
  }

  const Pipeline pipeline_;
  const ShortcutOptions& options_;
  const std::optional<std::vector<std::uint32_t>> order_;
  Deeds deeds_;
  std::uint32_t next_id_;
  std::size_t room_;
  joined::ArrivalsByRule arrivals_;
  Follower::Ranks ranks_;
  std::map<std::uint32_t, std::set<Cube>> entrances_;  ///< by table
  std::map<std::uint32_t, Changed> changed_;           ///< by index of the rule
  std::map<Content, Around> around_;
};

}  // namespace

ShortcutRules with_shortcuts(const RuleSet& rules, const Traffic& traffic,
                             const ShortcutOptions& options) {
  return Shortening(rules, traffic, options).run();
}

}  // namespace greynic::optimizer
