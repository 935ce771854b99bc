#include "greynic/optimizer/live.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "greynic/verify/verify.h"
#include "src/live/beside.h"
#include "src/live/detours.h"
#include "src/problem.h"
#include "src/table_planner.h"

namespace greynic::optimizer {

using live::KeptRule;
using live::State;
using live::Told;

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
      kept[id].order =
          order_.place(rule.table, rule.priority, std::nullopt,
                       [&kept](RuleId other, std::uint64_t order) { kept[other].order = order; });
      kept[id].present = true;
      if (rule.weight > 0.0) kept[id].weight = rule.weight;
      order_.add(rule.table, kept[id].order, id);
    }
    for (const KeptRule& rule : kept) {
      places_.push_back({rule.rule.table, rule.rule.priority, rule.order});
    }
    source_ = rules.source;
    if (options_.full_layouts == FullLayouts::kBeside) {
      beside_ =
          std::make_unique<live::Beside>(kept, source_, options_.search, options_.most_comparisons);
    }
    auto made = State::create(std::move(kept), layout);
    if (!made) return pass_on(made);
    state_.emplace(std::move(*made));
    reference_ = state().matchers_tried();
    growth_ = std::max(options_.search.max_growth, growth());
    return {};
  }

  Result<LiveStep> insert(FlowRule rule, std::optional<RuleId> before) {
    LiveStep step;
    step.rule = static_cast<RuleId>(places_.size());
    if (!free_.empty()) {
      step.rule = free_.back();
      free_.pop_back();
    }
    if (places_.size() <= step.rule) places_.resize(step.rule + 1);
    KeptRule kept;
    if (before) rule.priority = places_[*before].priority;
    kept.order = order_.place(rule.table, rule.priority,
                              before ? std::optional(places_[*before].order) : std::nullopt,
                              [this](RuleId id, std::uint64_t order) { move(id, order); });
    places_[step.rule] = {rule.table, rule.priority, kept.order};
    order_.add(rule.table, kept.order, step.rule);
    if (rule.weight > 0.0) kept.weight = rule.weight;
    kept.rule = std::move(rule);
    kept.present = true;
    const Told told{.kind = Told::Kind::kPutIn, .id = step.rule, .rule = kept};
    note(told);
    if (waits_) return detour(told, kept.rule, {}, step);
    if (options_.full_layouts == FullLayouts::kAtOnce && !state().can_hold(kept.rule)) {
      std::vector<KeptRule> rules = state().rules();
      if (rules.size() <= step.rule) rules.resize(step.rule + 1);
      rules[step.rule] = std::move(kept);
      return rebuild_with(rules, step);
    }
    std::vector<Match> doubtful;
    const bool proven = live::put_in(state(), step.rule, std::move(kept), step,
                                     options_.most_comparisons, doubt(doubtful));
    return put(proven, step, told, told.rule.rule, doubtful);
  }

  Result<LiveStep> erase(RuleId id) {
    LiveStep step;
    step.rule = id;
    order_.erase(places_[id].table, places_[id].order);
    free_.push_back(id);
    const Told told{.kind = Told::Kind::kTakeOut, .id = id};
    note(told);
    const FlowRule gone = beside_ ? rule_now(id) : FlowRule();
    if (waits_) return detour(told, gone, {}, step);
    std::vector<Match> doubtful;
    const bool proven =
        live::take_out(state(), id, step, options_.most_comparisons, doubt(doubtful));
    return put(proven, step, told, gone, doubtful);
  }

  Result<LiveStep> weigh(RuleId id, double weight) {
    LiveStep step;
    step.rule = id;
    const Told told{.kind = Told::Kind::kWeigh, .id = id, .weight = weight};
    note(told);
    if (waits_) {
      detours_.note(told);
      return waiting(step);
    }
    live::weigh_rule(state(), id, weight);
    return put(true, step, told, {}, {});
  }

  void set_lines(RuleId id, std::vector<std::uint32_t> lines) {
    const Told told{.kind = Told::Kind::kLines, .id = id, .lines = lines};
    note(told);
    if (waits_) {
      detours_.note(told);
    } else {
      state().set_from(id, std::move(lines));
    }
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

  Result<LiveStep> rebuild() {
    if (const auto done = wait(); !done) return pass_on(done);
    return rebuild_with(state().rules(), {});
  }

  Result<void> wait() {
    if (beside_) {
      if (auto ready = beside_->wait()) adopt(std::move(*ready));
    }
    if (failed_) return tl::unexpected<Error>(*failed_);
    return {};
  }

  [[nodiscard]] const State& state() const { return *state_; }
  State& state() { return *state_; }
  [[nodiscard]] double drift() const {
    return reference_ > 0.0 ? state().matchers_tried() / reference_ - 1.0 : 0.0;
  }
  [[nodiscard]] Result<Layout> layout_now() const {
    if (failed_) return tl::unexpected<Error>(*failed_);
    return waits_ ? detours_.layout(state(), source_) : state().layout();
  }
  [[nodiscard]] const RuleOrder& order() const { return order_; }
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  struct Place {
    std::uint32_t table = 0;
    RulePriority priority = 0;
    std::uint64_t order = 0;
  };

  void note(Told told) {
    if (!beside_) return;
    if (auto ready = beside_->tell(std::move(told))) adopt(std::move(*ready));
  }

  void adopt(Result<live::FullLayout> ready) {
    if (!ready) {
      failed_ = ready.error();
      waits_ = true;
      return;
    }
    beside_->drop(std::move(*state_));
    state_.emplace(std::move(ready->state));
    reference_ = ready->tried;
    growth_ = std::max(options_.search.max_growth, ready->growth);
    waits_ = false;
    detours_.clear();
    late_.clear();
  }

  std::vector<Match>* doubt(std::vector<Match>& matches) { return beside_ ? &matches : nullptr; }

  /// A rule that may have come since the state stands still.
  [[nodiscard]] const FlowRule& rule_now(RuleId id) const {
    const auto late = late_.find(id);
    return late == late_.end() ? state().rules()[id].rule : late->second;
  }

  /// Sends the rule's packets, and doubtful ones, to software until a full layout is there.
  Result<LiveStep> detour(const Told& told, const FlowRule& rule, std::vector<Match> matches,
                          LiveStep step) {
    const std::size_t before = detours_.entries();
    matches.push_back(rule.match);
    if (told.kind == Told::Kind::kPutIn) late_[told.id] = rule;
    detours_.add(told, rule.table, std::move(matches));
    step.entries_added = detours_.entries() - before;
    return waiting(step);
  }

  void move(RuleId id, std::uint64_t order) {
    places_[id].order = order;
    const Told told{.kind = Told::Kind::kOrder, .id = id, .order = order};
    note(told);
    if (waits_) {
      detours_.note(told);
    } else {
      state().set_order(id, order);
    }
  }

  Result<LiveStep> waiting(LiveStep step) const {
    if (failed_) return tl::unexpected<Error>(*failed_);
    step.waits = true;
    return step;
  }

  /// A step that was taken, and is right if `proven`. `rule`: that came or went.
  Result<LiveStep> put(bool proven, const LiveStep& step, const Told& told, const FlowRule& rule,
                       const std::vector<Match>& doubtful) {
    const bool grown = proven && growth() > growth_ * (1.0 + options_.max_drift);
    if (proven && !grown && !(drift() > options_.max_drift)) return step;
    switch (options_.full_layouts) {
      case FullLayouts::kNever:
        return fail(ErrorCode::kTooBig, "the step needs a full layout");
      case FullLayouts::kAtOnce:
        return rebuild_with(state().rules(), step);
      case FullLayouts::kBeside:
        break;
    }
    beside_->ask();
    if (proven) return step;
    waits_ = true;
    return detour(told, rule, doubtful, step);
  }

  /// Rules of the layout for each rule.
  [[nodiscard]] double growth() const {
    return static_cast<double>(state().entries()) /
           static_cast<double>(std::max<std::size_t>(1, order_.size()));
  }

  Result<LiveStep> rebuild_with(const std::vector<KeptRule>& kept, const LiveStep& step) {
    auto made = live::full_layout(kept, source_, options_.search);
    if (!made) return pass_on(made);
    state_.emplace(std::move(made->state));
    reference_ = made->tried;
    growth_ = std::max(options_.search.max_growth, made->growth);
    LiveStep done;
    done.rule = step.rule;
    done.rebuilt = true;
    return done;
  }

  LiveOptions options_;
  std::string source_;
  RuleOrder order_;
  std::vector<Place> places_;  ///< by id
  std::vector<RuleId> free_;
  std::optional<State> state_;
  bool waits_ = false;               ///< the state stands still: a full layout is under way
  live::Detours detours_;            ///< what came since
  std::map<RuleId, FlowRule> late_;  ///< rules that came since
  std::optional<Error> failed_;
  double reference_ = 0.0;  ///< matchers tried when it was laid out in full
  double growth_ = 1.0;     ///< that a full layout may have
  std::unique_ptr<live::Beside> beside_;
};

namespace {

/// Steps follow each table by itself, so none may do the work of several. The layout is equivalent.
Result<void> check_tables_apart(const RuleSet& rules, const Layout& layout) {
  const RulesOfTable tables = rules_by_table(rules);
  if (tables.size() == 1) return {};
  for (const auto& [id, members] : tables) {
    const auto verdict = verify::verify(rules_of(rules, members), layout);
    if (!verdict) return verdict.error().while_doing(fmt::format("looking at table {}", id));
    if (verdict->equivalent) continue;
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("table {} of the layout does at once what the rules do in several tables, and "
                    "updates follow each table by itself; lay the rules out with --keep-tables",
                    id));
  }
  return {};
}

}  // namespace

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
  if (const auto apart = check_tables_apart(rules, layout); !apart) return pass_on(apart);
  options.search.limits.most_ranges = 0;  // steps know no ranges
  options.search.join_tables = false;     // each table is followed by itself
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
  kept_->set_lines(rule, std::move(from));
}
Result<LiveStep> LiveLayout::rebuild() { return kept_->rebuild(); }
Result<void> LiveLayout::wait() { return kept_->wait(); }

Result<void> LiveLayout::replace(const RuleSet& rules) {
  auto kept = std::make_unique<Kept>(kept_->options());
  if (auto started = kept->start(rules); !started) return started;
  kept_ = std::move(kept);
  return {};
}

RuleSet LiveLayout::rules() const {
  if (!kept_->wait()) return {{}, kept_->source()};
  return live::in_order(kept_->state().rules(), kept_->source()).rules;
}
Layout LiveLayout::layout() const {
  if (!kept_->wait()) return {};
  return kept_->state().layout();
}
Result<Layout> LiveLayout::layout_now() const { return kept_->layout_now(); }
double LiveLayout::matchers_tried() const {
  return kept_->wait() ? kept_->state().matchers_tried() : 0.0;
}
double LiveLayout::drift() const { return kept_->drift(); }
std::size_t LiveLayout::layout_rules() const {
  return kept_->wait() ? kept_->state().entries() : 0;
}

}  // namespace greynic::optimizer
