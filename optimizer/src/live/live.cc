#include "greynic/optimizer/live.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "greynic/verify/verify.h"
#include "src/live/repair.h"

namespace greynic::optimizer {

using live::Changes;
using live::Cube;
using live::KeptRule;
using live::State;

namespace {

/// Rules of each table by what orders them: the priority, then a number with room between two.
class RuleOrder {
 public:
  using Moved = std::function<void(RuleId, std::uint64_t)>;

  /// A free place in front of `next`, of the same priority, or behind all of the priority.
  std::uint64_t place(std::uint32_t table, RulePriority priority, std::optional<std::uint64_t> next,
                      const Moved& moved) {
    std::map<std::uint64_t, RuleId>& rules = by_order_[table];
    const std::uint64_t first = std::uint64_t{priority} << 32;
    const std::uint64_t end = first + kEnd;
    const auto behind = next ? rules.find(*next) : rules.upper_bound(end);
    const std::uint64_t high = next ? *next : end;
    const std::uint64_t low =
        behind == rules.begin() ? first : std::max(first, std::prev(behind)->first);
    if (high - low >= 2)
      return next ? low + (high - low) / 2 : low + std::min(kGap, high - low - 1);
    const std::optional<RuleId> id = next ? std::optional(rules[*next]) : std::nullopt;
    std::uint64_t moved_to = 0;
    spread(rules, first, end, [&](RuleId rule, std::uint64_t order) {
      if (id == rule) moved_to = order;
      moved(rule, order);
    });
    return place(table, priority, next ? std::optional(moved_to) : std::nullopt, moved);
  }
  void add(std::uint32_t table, std::uint64_t order, RuleId id) { by_order_[table][order] = id; }
  void erase(std::uint32_t table, std::uint64_t order) { by_order_[table].erase(order); }
  [[nodiscard]] std::size_t size() const {
    std::size_t count = 0;
    for (const auto& [table, rules] : by_order_) count += rules.size();
    return count;
  }
  [[nodiscard]] const std::map<std::uint32_t, std::map<std::uint64_t, RuleId>>& all() const {
    return by_order_;
  }

 private:
  static constexpr std::uint64_t kEnd = 0xffffffff;
  static constexpr std::uint64_t kGap = 1 << 16;

  /// Gives the rules of one priority equal distances.
  static void spread(std::map<std::uint64_t, RuleId>& rules, std::uint64_t first, std::uint64_t end,
                     const Moved& moved) {
    std::vector<RuleId> ids;
    const auto from = rules.lower_bound(first);
    const auto to = rules.upper_bound(end);
    for (auto rule = from; rule != to; ++rule) ids.push_back(rule->second);
    rules.erase(from, to);
    const std::uint64_t gap = std::min(kGap, (end - first) / (ids.size() + 1));
    std::uint64_t order = first;
    for (const RuleId id : ids) {
      rules[order += gap] = id;
      moved(id, order);
    }
  }

  std::map<std::uint32_t, std::map<std::uint64_t, RuleId>> by_order_;
};

}  // namespace

class LiveLayout::Kept {
 public:
  explicit Kept(LiveOptions options) : options_(std::move(options)) {}

  Result<void> start(const RuleSet& rules, const Layout& layout) {
    std::vector<KeptRule> kept(rules.rules.size());
    for (RuleId id = 0; id < kept.size(); ++id) {
      const FlowRule& rule = rules.rules[id];
      kept[id].rule = rule;
      kept[id].order = place_for(rule, std::nullopt, kept);
      kept[id].present = true;
      if (rule.weight > 0.0) kept[id].weight = rule.weight;
      order_.add(rule.table, kept[id].order, id);
    }
    source_ = rules.source;
    return take(std::move(kept), layout);
  }

  Result<LiveStep> insert(FlowRule rule, std::optional<RuleId> before) {
    LiveStep step;
    step.rule = static_cast<RuleId>(state().rules().size());
    if (!free_.empty()) {
      step.rule = free_.back();
      free_.pop_back();
    }
    KeptRule kept;
    if (before) rule.priority = state().rule(*before).rule.priority;
    kept.order =
        order_.place(rule.table, rule.priority,
                     before ? std::optional(state().rule(*before).order) : std::nullopt,
                     [this](RuleId id, std::uint64_t order) { state().set_order(id, order); });
    if (rule.weight > 0.0) kept.weight = rule.weight;
    kept.rule = std::move(rule);
    kept.present = true;
    order_.add(kept.rule.table, kept.order, step.rule);
    if (!state().can_hold(kept.rule)) {
      std::vector<KeptRule> rules = state().rules();
      if (rules.size() <= step.rule) rules.resize(step.rule + 1);
      rules[step.rule] = std::move(kept);
      if (!options_.full_layouts) return rebuild_when_allowed(step.rule);
      return rebuild_with(std::move(rules), step.rule);
    }
    state().add_rule(step.rule, std::move(kept));
    const Cube cube = state().cube_of_rule(step.rule);
    return settle(step, state().root_of(step.rule), cube, step.rule);
  }

  Result<LiveStep> erase(RuleId id) {
    LiveStep step;
    step.rule = id;
    const std::uint32_t root = state().root_of(id);
    const Cube cube = state().cube_of_rule(id);
    order_.erase(state().rule(id).rule.table, state().rule(id).order);
    free_.push_back(id);
    state().remove_rule(id, changes_);
    return settle(step, root, cube, live::kNothing);
  }

  Result<LiveStep> weigh(RuleId id, double weight) {
    LiveStep step;
    step.rule = id;
    state().weigh(id, weight);
    state().move_by_weight(id);
    return finish(step);
  }

  /// Takes the rules and lays them out.
  Result<void> start(const RuleSet& rules) {
    Traffic traffic;
    for (const FlowRule& rule : rules.rules) {
      traffic.flows.push_back(
          {live::packet_of(rule.match), rule.weight > 0.0 ? rule.weight : 1.0, rule.table});
    }
    const auto made = optimize(rules, traffic, options_.search);
    if (!made) return pass_on(made);
    return start(rules, made->layout);
  }
  [[nodiscard]] const LiveOptions& options() const { return options_; }

  Result<LiveStep> rebuild(RuleId changed) { return rebuild_with(state().rules(), changed); }

  [[nodiscard]] const State& state() const { return *state_; }
  State& state() { return *state_; }
  [[nodiscard]] double drift() const {
    return reference_ > 0.0 ? state().matchers_tried() / reference_ - 1.0 : 0.0;
  }
  [[nodiscard]] const RuleOrder& order() const { return order_; }

  [[nodiscard]] RuleSet rules(const std::vector<KeptRule>& kept) const {
    RuleSet set{{}, source_};
    for (const auto& [table, rules] : order_.all()) {
      RulePriority priority = 0;
      for (const auto& [order, id] : rules) {
        set.rules.push_back(kept[id].rule);
        set.rules.back().priority = priority++;
      }
    }
    return set;
  }

 private:
  std::uint64_t place_for(const FlowRule& rule, std::optional<std::uint64_t> next,
                          std::vector<KeptRule>& kept) {
    return order_.place(rule.table, rule.priority, next,
                        [&kept](RuleId id, std::uint64_t order) { kept[id].order = order; });
  }

  Result<void> take(std::vector<KeptRule> rules, const Layout& layout) {
    auto made = State::create(std::move(rules), layout);
    if (!made) return pass_on(made);
    state_.emplace(std::move(*made));
    reference_ = state().matchers_tried();
    growth_ = std::max(options_.search.max_growth, growth());
    return {};
  }

  /// Proves the step, mending what it finds.
  Result<LiveStep> settle(LiveStep step, std::uint32_t root, const Cube& cube, RuleId came) {
    const std::uint64_t before = state().looked_at();
    live::StepProof proof(state(), changes_, [this](const live::Fault& fault) {
      return live::repair(state(), fault, changes_);
    });
    const bool proven = proof.holds(root, cube, came);
    step.comparisons = state().looked_at() - before;
    step.entries_added = changes_.added.size();
    step.entries_removed = changes_.removed;
    step.matchers_added = changes_.matchers_added;
    step.matchers_removed = changes_.matchers_removed;
    changes_ = {};
    if (!proven) return rebuild_when_allowed(step.rule);
    state().count_lost();
    if (came != live::kNothing) {
      state().count(came);
      state().move_by_weight(came);
    }
    return finish(step);
  }

  Result<LiveStep> finish(const LiveStep& step) {
    const bool grown = growth() > growth_ * (1.0 + options_.max_drift);
    if (grown || drift() > options_.max_drift) return rebuild_when_allowed(step.rule);
    return step;
  }

  Result<LiveStep> rebuild_when_allowed(RuleId changed) {
    if (options_.full_layouts) return rebuild(changed);
    return fail(ErrorCode::kTooBig, "the step needs a full layout");
  }

  /// Rules of the layout for each rule.
  [[nodiscard]] double growth() const {
    return static_cast<double>(state().entries()) /
           static_cast<double>(std::max<std::size_t>(1, order_.size()));
  }

  Result<LiveStep> rebuild_with(std::vector<KeptRule> kept, RuleId changed) {
    Traffic traffic;
    for (const auto& [table, rules] : order_.all()) {
      for (const auto& [order, id] : rules) {
        traffic.flows.push_back({live::packet_of(kept[id].rule.match), kept[id].weight, table});
      }
    }
    auto made = optimize(rules(kept), traffic, options_.search);
    if (!made) return pass_on(made);
    if (auto taken = take(std::move(kept), made->layout); !taken) return pass_on(taken);
    LiveStep step;
    step.rule = changed;
    step.rebuilt = true;
    return step;
  }

  LiveOptions options_;
  std::string source_;
  RuleOrder order_;
  std::vector<RuleId> free_;
  std::optional<State> state_;
  Changes changes_;
  double reference_ = 0.0;  ///< matchers tried when it was laid out in full
  double growth_ = 1.0;     ///< that a full layout may have
};

Result<LiveLayout> LiveLayout::create(const RuleSet& rules, const Layout& layout,
                                      LiveOptions options) {
  const auto verdict = verify::verify(rules, layout);
  if (!verdict) return verdict.error().while_doing("proving the layout to begin with");
  if (!verdict->equivalent) {
    const verify::Counterexample& found = *verdict->counterexample;
    return fail(ErrorCode::kBadInput,
                fmt::format("the layout is not one of these rules: for the packet {} they say {}, "
                            "it says {}; lay the rules out again",
                            to_string(found.packet), found.by_rules, found.by_layout));
  }
  options.search.limits.most_ranges = 0;  // steps know no ranges
  auto kept = std::make_unique<Kept>(std::move(options));
  if (auto started = kept->start(rules, without_ranges(layout)); !started) {
    return pass_on(started);
  }
  return LiveLayout(std::move(kept));
}

LiveLayout::LiveLayout(std::unique_ptr<Kept> kept) : kept_(std::move(kept)) {}
LiveLayout::LiveLayout(LiveLayout&&) noexcept = default;
LiveLayout& LiveLayout::operator=(LiveLayout&&) noexcept = default;
LiveLayout::~LiveLayout() = default;

std::vector<RuleId> LiveLayout::ids(std::uint32_t table) const {
  std::vector<RuleId> ids;
  const auto& tables = kept_->order().all();
  if (const auto rules = tables.find(table); rules != tables.end()) {
    for (const auto& [order, id] : rules->second) ids.push_back(id);
  }
  return ids;
}

Result<LiveStep> LiveLayout::insert(FlowRule rule, std::optional<RuleId> before) {
  return kept_->insert(std::move(rule), before);
}
Result<LiveStep> LiveLayout::erase(RuleId rule) { return kept_->erase(rule); }
Result<LiveStep> LiveLayout::weigh(RuleId rule, double weight) {
  return kept_->weigh(rule, weight);
}
void LiveLayout::set_lines(RuleId rule, std::vector<std::uint32_t> from) {
  kept_->state().set_from(rule, std::move(from));
}
Result<LiveStep> LiveLayout::rebuild() { return kept_->rebuild(0); }

Result<void> LiveLayout::replace(const RuleSet& rules) {
  auto kept = std::make_unique<Kept>(kept_->options());
  if (auto started = kept->start(rules); !started) return started;
  kept_ = std::move(kept);
  return {};
}

RuleSet LiveLayout::rules() const { return kept_->rules(kept_->state().rules()); }
Layout LiveLayout::layout() const { return kept_->state().layout(); }
double LiveLayout::matchers_tried() const { return kept_->state().matchers_tried(); }
double LiveLayout::drift() const { return kept_->drift(); }
std::size_t LiveLayout::layout_rules() const { return kept_->state().entries(); }

}  // namespace greynic::optimizer
