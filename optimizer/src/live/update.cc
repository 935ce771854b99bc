#include "greynic/optimizer/update.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>

#include "src/problem.h"

namespace greynic::optimizer {
namespace {

/// Places of the longest ascending part, of numbers that are -1 or all different.
std::vector<std::size_t> longest_ascending(const std::vector<std::int64_t>& numbers) {
  std::vector<std::size_t> ends;  // of ascending parts, by their length
  std::vector<std::int64_t> previous(numbers.size(), -1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) continue;
    const auto at =
        std::lower_bound(ends.begin(), ends.end(), numbers[i],
                         [&](std::size_t end, std::int64_t n) { return numbers[end] < n; });
    if (at != ends.begin()) previous[i] = static_cast<std::int64_t>(*std::prev(at));
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::size_t> part;
  for (std::int64_t i = ends.empty() ? -1 : static_cast<std::int64_t>(ends.back()); i >= 0;
       i = previous[static_cast<std::size_t>(i)]) {
    part.push_back(static_cast<std::size_t>(i));
  }
  return part;
}

/// What an update does to a LiveLayout, with what it took.
class Updating {
 public:
  Updating(LiveLayout& live, std::size_t steps, const std::function<void(double)>& on_step)
      : live_(live), steps_(static_cast<double>(steps)), on_step_(on_step) {}

  template <typename Step>
  Result<RuleId> step(Step take) {
    const auto start = std::chrono::steady_clock::now();
    const Result<LiveStep> taken = take();
    if (!taken) return pass_on(taken);
    const auto end = std::chrono::steady_clock::now();
    sum_.step_seconds.push_back(std::chrono::duration<double>(end - start).count());
    if (on_step_) on_step_(static_cast<double>(sum_.step_seconds.size()) / steps_);
    if (taken->waits && !waits_since_) waits_since_ = start;
    if (!taken->waits) waited_until(end);
    sum_.waited += taken->waits ? 1 : 0;
    sum_.rebuilds += taken->rebuilt ? 1 : 0;
    sum_.entries_added += taken->entries_added;
    sum_.entries_removed += taken->entries_removed;
    sum_.matchers_added += taken->matchers_added;
    sum_.matchers_removed += taken->matchers_removed;
    sum_.most_drift = std::max(sum_.most_drift, live_.drift());
    return taken->rule;
  }

  Result<void> end() {
    const auto done = live_.wait();
    waited_until(std::chrono::steady_clock::now());
    return done;
  }

  UpdateSum& sum() { return sum_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void waited_until(Time now) {
    if (!waits_since_) return;
    sum_.longest_wait_seconds = std::max(
        sum_.longest_wait_seconds, std::chrono::duration<double>(now - *waits_since_).count());
    waits_since_.reset();
    ++sum_.rebuilds;
  }

  LiveLayout& live_;
  double steps_;
  const std::function<void(double)>& on_step_;
  UpdateSum sum_;
  std::optional<Time> waits_since_;
};

}  // namespace

std::vector<std::int64_t> rules_that_stay(const RuleSet& before, const RuleSet& now) {
  using Key = std::tuple<const Match&, const std::vector<Action>&>;
  std::vector<std::int64_t> stays(before.rules.size(), -1);
  const RulesOfTable after = rules_by_table(now);
  for (const auto& [table, members] : rules_by_table(before)) {
    const auto others = after.find(table);
    if (others == after.end()) continue;
    std::map<Key, std::vector<std::uint32_t>> places;  // in the order of `now`, last first
    for (std::size_t i = others->second.size(); i-- > 0;) {
      const FlowRule& rule = now.rules[others->second[i]];
      places[{rule.match, rule.actions}].push_back(static_cast<std::uint32_t>(i));
    }
    std::vector<std::int64_t> found;
    for (const std::uint32_t index : members) {
      const FlowRule& rule = before.rules[index];
      const auto same = places.find({rule.match, rule.actions});
      if (same == places.end() || same->second.empty()) {
        found.push_back(-1);
        continue;
      }
      found.push_back(same->second.back());
      same->second.pop_back();
    }
    for (const std::size_t i : longest_ascending(found)) {
      stays[members[i]] = others->second[static_cast<std::size_t>(found[i])];
    }
  }
  return stays;
}

namespace {

/// All steps from `before` to `now`.
Result<void> take_steps(LiveLayout& live, Updating& updating, const RuleSet& before,
                        const RuleSet& now, const std::vector<std::int64_t>& stays) {
  std::vector<std::optional<RuleId>> id_of(now.rules.size());
  for (RuleId id = 0; id < stays.size(); ++id) {
    if (stays[id] >= 0) id_of[static_cast<std::size_t>(stays[id])] = id;
  }
  for (RuleId id = 0; id < stays.size(); ++id) {
    if (stays[id] < 0) continue;
    const FlowRule& rule = now.rules[static_cast<std::size_t>(stays[id])];
    live.set_lines(id, rule.from);
  }
  for (const auto& [table, members] : rules_by_table(now)) {
    std::optional<RuleId> next;
    for (std::size_t i = members.size(); i-- > 0;) {
      std::optional<RuleId>& id = id_of[members[i]];
      if (!id) {
        FlowRule rule = now.rules[members[i]];
        if (!next) rule.priority = 0xffffffff;  // behind all, whatever their numbers were
        const auto came = updating.step([&] { return live.insert(rule, next); });
        if (!came) return pass_on(came);
        id = *came;
      }
      next = id;
    }
  }
  for (RuleId id = 0; id < stays.size(); ++id) {
    if (stays[id] >= 0) {
      const double weight = now.rules[static_cast<std::size_t>(stays[id])].weight;
      if (!(weight > 0.0) || weight == before.rules[id].weight) continue;
      ++updating.sum().weighed;
      if (const auto done = updating.step([&] { return live.weigh(id, weight); }); !done) {
        return pass_on(done);
      }
    } else if (const auto done = updating.step([&] { return live.erase(id); }); !done) {
      return pass_on(done);
    }
  }
  return {};
}

}  // namespace

Result<UpdateSum> update(LiveLayout& live, const RuleSet& before, const RuleSet& now,
                         const std::function<void(double)>& on_step) {
  const std::vector<std::int64_t> stays = rules_that_stay(before, now);
  const auto kept = static_cast<std::size_t>(
      std::count_if(stays.begin(), stays.end(), [](std::int64_t place) { return place >= 0; }));
  Updating updating(live, before.rules.size() + now.rules.size() - 2 * kept, on_step);
  if (const auto taken = take_steps(live, updating, before, now, stays); !taken) {
    if (taken.error().code != ErrorCode::kTooBig) return pass_on(taken);
    if (const auto replaced = live.replace(now); !replaced) return pass_on(replaced);
    ++updating.sum().rebuilds;
  }
  if (const auto ended = updating.end(); !ended) return pass_on(ended);
  UpdateSum sum = std::move(updating.sum());
  sum.kept = kept;
  sum.came = now.rules.size() - kept;
  sum.gone = before.rules.size() - kept;
  std::sort(sum.step_seconds.begin(), sum.step_seconds.end());
  return sum;
}

void weigh_rules(RuleSet& rules, const Traffic& traffic) {
  constexpr double kTrace = 1e-6;
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  for (FlowRule& rule : rules.rules) rule.weight = kTrace / static_cast<double>(rules.rules.size());
  Effects effects;
  for (const auto& [table, members] : rules_by_table(rules)) {
    const Problem problem = make_problem(rules, members, effects);
    Rows packets(problem.columns.words());
    std::vector<double> weights;
    for (const TrafficFlow& flow : traffic.flows) {
      if (flow.table != table) continue;
      problem.columns.pack(flow.packet, packets.add());
      weights.push_back(flow.weight);
    }
    const auto hits = first_matches(problem.rows, packets);
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (hits[i] != kNoRow) rules.rules[members[hits[i]]].weight += weights[i] / all;
    }
  }
}

}  // namespace greynic::optimizer
