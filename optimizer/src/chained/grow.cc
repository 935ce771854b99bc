#include "src/chained/grow.h"

#include "src/chained/grower.h"

namespace greynic::optimizer::chained {
namespace {

void append_chain(const Problem& rows, const Chain& chain, std::vector<PlanMatcher>& matchers) {
  for (const Group& group : chain.groups) {
    PlanMatcher matcher(rows.rows.mask[group.rows.front()], rows.rows.words());
    matcher.values.reserve(group.rows.size());
    matcher.entries.reserve(group.rows.size());
    for (const std::uint32_t row : group.rows) {
      matcher.values.add(rows.rows.value[row]);
      matcher.entries.push_back({rows.rule[row], kNowhere, rows.weight[row]});
    }
    matchers.push_back(std::move(matcher));
  }
}

}  // namespace

bool Grower::grow_whole(const Conflicts& conflicts) {
  grow(whole(conflicts), new_table(), kNowhere, {0, options_.most_jumps});
  return !too_much();
}

Grown Grower::run(const Conflicts& conflicts) {
  if (!grow_whole(conflicts)) return {{}, filtered_, {}, work_};
  const auto made = [&] { return GrownPlan{std::move(plan_), std::move(quick_)}; };
  if (forks_.empty()) return {made(), filtered_, {}, work_};
  Grown grown{this->grown(), filtered_, {}, 0};
  leave_filters_out();
  if (!too_much()) grown.without = made();
  grown.work = work_;
  return grown;
}

Node Grower::whole(const Conflicts& conflicts) const {
  Node root(packets_.words());
  root.rows = units_.rows;
  root.conflicts = conflicts;
  root.packets.resize(packets_.size());
  std::iota(root.packets.begin(), root.packets.end(), 0U);
  return root;
}

void Grower::leave_filters_out() {
  for (Fork& fork : std::exchange(forks_, {})) {
    auto& matchers = plan_.edit(fork.table).matchers;
    matchers.erase(matchers.begin() + static_cast<std::ptrdiff_t>(fork.matchers), matchers.end());
    for (std::size_t table = fork.begin; table < fork.end; ++table) plan_.clear(table);
    std::erase_if(quick_, [&](const QuickChain& chain) {
      return chain.table == fork.table || (chain.table >= fork.begin && chain.table < fork.end);
    });
    entries_ -= fork.entries;
    tried_ -= fork.tried;
    filters_ = false;
    grow(std::move(fork.node), fork.table, fork.exit, fork.way);
  }
}

std::size_t Grower::grow_filtered(Node node, const Filter& filter, std::uint32_t table,
                                  std::uint32_t exit, Way way) {
  filtered_ = true;
  const bool forks = options_.without_too && node.filters == 0;
  const std::size_t number = forks_.size();
  const std::size_t before = entries_;
  const double tried_before = tried_;
  if (forks) {
    forks_.push_back({node, table, exit, way, plan_[table].matchers.size(), 0, 0.0, plan_.size()});
  }
  std::size_t deepest = 0;
  Node left = put_filter(std::move(node), filter, table, exit, way, deepest);
  deepest = std::max(deepest, grow(std::move(left), table, exit, way));
  if (forks) {
    forks_[number].entries = entries_ - before;
    forks_[number].tried = tried_ - tried_before;
    forks_[number].end = plan_.size();
  }
  return deepest;
}

std::uint32_t Grower::new_table() {
  if (free_.empty()) {
    plan_.add();
    owner_.push_back(deciding_);
    return static_cast<std::uint32_t>(plan_.size() - 1);
  }
  const std::uint32_t table = free_.back();
  free_.pop_back();
  owner_[table] = deciding_;
  return table;
}

std::size_t Grower::grow(Node node, std::uint32_t table, std::uint32_t exit, Way way) {
  const std::uint32_t above = deciding_;
  const std::size_t deepest = grow_on(std::move(node), table, exit, way);
  deciding_ = above;
  return deepest;
}

std::size_t Grower::grow_on(Node node, std::uint32_t table, std::uint32_t exit, Way way) {
  std::size_t deepest = way.jumps;
  while (!too_much()) {
    take_up(node);
    if (end_at_last_word(node)) exit = kNowhere;
    if (!node.scouted) scout(node);
    work_ += node.rows.size();
    plan_.edit(table).exit = exit;
    plan_.edit(table).missing = missing(node);
    deepest = std::max(deepest, way.jumps);
    if (node.rows.size() == 0) {
      tried_ += tried_from(plan_[table], plan_[table].matchers.size());
      return deepest;
    }
    constexpr double kShort = 1.6;
    const double hoped = chooser_.chain(node);
    const double chain =
        options_.chains_as_made ? cost_as_made(units_, node, hoped, missing(node)) : hoped;
    const bool is_short = !(node.all_weight > 0.0) || chain <= kShort * node.all_weight;
    if (!room_for_tables() || !way.one_more()) {
      finish(node, chain, table);
      return deepest;
    }
    const bool may_cut = !is_short && way.open();
    const std::uint32_t decision = may_cut ? keep(node, table, exit, way) : kNowhere;
    const auto decide = [&](Step step) {
      if (decision != kNowhere) decisions_[decision].step = std::move(step);
    };
    if (told_ != nullptr) {
      decide(*told_);
      refused_ = !may_cut || !begin_as_told(node, table, exit, way, deepest);
      continue;
    }
    const auto filter = filters_ && may_cut ? chooser_.best_filter(node) : std::nullopt;
    if (filter) {
      return std::max(deepest, grow_filtered(std::move(node), *filter, table, exit, way));
    }
    constexpr std::size_t kManyCuts = 24;
    const std::vector<Cut> cuts = may_cut ? chooser_.best_cuts(node, chain, 1) : std::vector<Cut>{};
    const auto guard = chooser_.best_guard(node);
    if (guard && guard->cost < chain && (cuts.empty() || guard->cost < cuts.front().cost)) {
      decide({true, {}});
      node = put_guard(std::move(node), *guard, table, exit, way, deepest);
      continue;
    }
    Node rest(packets_.words());
    // A cut may come to nothing: its cost is an estimate.
    const auto make = [&](const Cut& cut) {
      if (!(cut.cost < chain) || !make_cut(node, cut.mask, table, exit, rest, way, deepest)) {
        return false;
      }
      decide({false, cut.mask});
      return true;
    };
    bool made = std::any_of(cuts.begin(), cuts.end(), make);
    if (!made && !cuts.empty()) {
      const std::vector<Cut> more = chooser_.best_cuts(node, chain, kManyCuts);
      made = std::any_of(more.begin(), more.end(), make);
    }
    if (!made) {
      finish(node, chain, table);
      return deepest;
    }
    node = std::move(rest);
  }
  return deepest;
}

bool Grower::begin_as_told(Node& node, std::uint32_t& table, std::uint32_t exit, Way& way,
                           std::size_t& deepest) {
  const Step* const step = std::exchange(told_, nullptr);
  if (step->guard) {
    const auto guard = chooser_.best_guard(node);
    if (guard) node = put_guard(std::move(node), *guard, table, exit, way, deepest);
    return guard.has_value();
  }
  Node rest(packets_.words());
  if (!make_cut(node, step->mask, table, exit, rest, way, deepest)) return false;
  node = std::move(rest);
  return true;
}

void Grower::scout(Node& node) {
  const std::size_t n = node.rows.size();
  node.scouted = true;
  for (std::uint32_t row = 0; row < n; ++row) local_[node.rows.unit[row]] = row;
  node.weight.assign(n, 0.0);
  node.all_weight = 0.0;
  for (const std::uint32_t packet : node.packets) {
    node.all_weight += packet_weight_[packet];
    const std::uint32_t unit = decider_[packet];
    if (unit != kNoRow && local_[unit] != kNoRow) {
      node.weight[local_[unit]] += packet_weight_[packet];
    }
  }
  kinds_.restart(n);
  node.kind.clear();
  node.kind_example.clear();
  node.kind_masks.clear();
  node.kind_written.clear();
  node.kind_class.clear();
  classes_.restart(n);
  std::vector<std::uint32_t> first_of_class;
  std::vector<Word> parted = node.decided;  // bits that part no matchers
  for (std::size_t w = 0; w < parted.size(); ++w) parted[w] |= units_.ranged[w];
  for (std::uint32_t row = 0; row < n; ++row) {
    const std::uint32_t kind =
        kinds_.number(kind_key(node.rows.hull.mask[row], node.decided, node.rows.ports[row]));
    if (kind == node.kind_example.size()) {
      node.kind_example.push_back(row);
      double masks = 1.0;
      double written = 1.0;
      for (std::size_t field = 0; field < kPortFields; ++field) {
        const std::uint32_t set = node.rows.ports[row][field];
        if (set == 0 || units_.as_range[field]) continue;
        const auto all = static_cast<double>(units_.sets[set].size());
        const std::size_t guards = left_out(units_.sets[set], units_.slot[field]).size();
        masks *= guards > 0 ? std::min(all, 1.0 + static_cast<double>(guards)) : all;
        written *= all;
      }
      node.kind_masks.push_back(masks);
      node.kind_written.push_back(written);
      const std::uint32_t number = classes_.number(
          kind_key(node.rows.hull.mask[row], parted, units_.kept_ports(node.rows.ports[row])));
      if (number == first_of_class.size()) first_of_class.push_back(kind);
      node.kind_class.push_back(first_of_class[number]);
    }
    node.kind.push_back(kind);
  }
  for (const std::uint32_t unit : node.rows.unit) local_[unit] = kNoRow;
}

void Grower::put_off(Node& node) {
  constexpr double kSurely = 0.8;  // of what the rule of thumb says, which mostly says too little
  if (node.rows.size() == 0 || node.rows.takes_all(0)) return;  // it is not grown
  end_at_last_word(node);
  scout(node);
  const double decided = node.all_weight - missing(node);
  const double thumb = tree_cost(chooser_.chain_of(node, node.kind_masks), decided, 0.0);
  node.waiting = std::max(node.all_weight, kSurely * thumb);
  node.waiting_rows = node.rows.size();
  waiting_ += node.waiting;
  waiting_rows_ += node.waiting_rows;
}

void Grower::finish(const Node& node, double hoped, std::uint32_t table) {
  constexpr std::size_t kLong = 2000;  // such chains take their time; others tell what they cost
  auto& matchers = plan_.edit(table).matchers;
  const std::size_t begin = matchers.size();
  if (units_.as_range[0] || units_.as_range[1]) {
    for (PlanMatcher& matcher : ranged::range_chain(units_, node)) {
      entries_ += matcher.entries.size();
      matchers.push_back(std::move(matcher));
    }
  } else {
    WrittenOut written = written_out(units_, node);
    entries_ += written.rows.rows.size();
    tried_ += hoped;
    if (written.rows.rows.size() > kLong && too_much()) return;
    tried_ -= hoped;
    put_chain(std::move(written), table);
  }
  tried_ += tried_from(plan_[table], begin);
}

void Grower::put_chain(WrittenOut written, std::uint32_t table) {
  constexpr std::size_t kRowsAUnit = 1000;  // rows of a long chain are held against one another
  const std::size_t rows = written.rows.rows.size();
  work_ += rows * rows / kRowsAUnit;
  const Chain chain = chain_of(written, circles::Care::kQuick);
  auto& matchers = plan_.edit(table).matchers;
  const std::size_t begin = matchers.size();
  append_chain(written.rows, chain, matchers);
  if (!chain.quick) return;
  quick_.push_back({table, begin, std::make_shared<const WrittenOut>(std::move(written))});
}

bool make_chains_again(GrownPlan& grown) {
  for (const QuickChain& chain : grown.quick) {
    auto& matchers = grown.plan.edit(chain.table).matchers;
    matchers.erase(matchers.begin() + static_cast<std::ptrdiff_t>(chain.begin), matchers.end());
    append_chain(chain.rows->rows, chain_of(*chain.rows), matchers);
  }
  return !std::exchange(grown.quick, {}).empty();
}

Grown grow_plan(Units& units, const Conflicts& conflicts, const Rows& packets,
                const std::vector<double>& packet_weight, const std::vector<std::uint32_t>& decider,
                const GrowOptions& options) {
  return Grower(units, packets, packet_weight, decider, options).run(conflicts);
}

}  // namespace greynic::optimizer::chained
