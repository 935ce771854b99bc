#include "src/live/beside.h"

#include <algorithm>
#include <utility>

namespace greynic::optimizer::live {

InOrder in_order(const std::vector<KeptRule>& rules, const std::string& source) {
  std::vector<RuleId> ids;
  for (RuleId id = 0; id < rules.size(); ++id) {
    if (rules[id].present) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [&](RuleId a, RuleId b) {
    const auto place = [&](RuleId id) { return std::pair(rules[id].rule.table, rules[id].order); };
    return place(a) < place(b);
  });
  InOrder made{{{}, source}, {}};
  for (const RuleId id : ids) {
    const FlowRule& rule = rules[id].rule;
    const bool same_table =
        !made.rules.rules.empty() && made.rules.rules.back().table == rule.table;
    const RulePriority priority = same_table ? made.rules.rules.back().priority + 1 : 0;
    made.rules.rules.push_back(rule);
    made.rules.rules.back().priority = priority;
    made.traffic.flows.push_back({packet_of(rule.match), rules[id].weight, rule.table});
  }
  return made;
}

Result<FullLayout> full_layout(const std::vector<KeptRule>& rules, const std::string& source,
                               const OptimizeOptions& search) {
  const InOrder ordered = in_order(rules, source);
  const auto made = optimize(ordered.rules, ordered.traffic, search);
  if (!made) return pass_on(made);
  auto state = State::create(rules, made->layout);
  if (!state) return pass_on(state);
  const double tried = state->matchers_tried();
  const auto count = static_cast<double>(std::max<std::size_t>(1, ordered.rules.rules.size()));
  const double growth = static_cast<double>(state->entries()) / count;
  return FullLayout{std::move(*state), tried, growth};
}

Beside::Beside(std::vector<KeptRule> rules, std::string source, OptimizeOptions search,
               std::uint64_t most)
    : search_(std::move(search)),
      source_(std::move(source)),
      most_(most),
      rules_(std::move(rules)) {
  search_.cost = {};  // nothing is predicted, and whose it is may not be for two threads
  thread_ = std::thread([this] { work(); });
}

Beside::~Beside() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::optional<Result<FullLayout>> Beside::tell(Told told) {
  std::optional<Result<FullLayout>> ready;
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    if (made_) {
      ready = std::move(made_);
      made_.reset();
      asked_ = false;
    }
    told_.push_back(std::move(told));
    many = told_.size() == kMostWaiting;
  }
  if (many) wake_.notify_all();
  return ready;
}

void Beside::drop(State state) {
  {
    const std::lock_guard lock(mutex_);
    dropped_.push_back(std::move(state));
  }
  wake_.notify_all();
}

void Beside::ask() {
  {
    const std::lock_guard lock(mutex_);
    if (asked_) return;
    asked_ = true;
  }
  wake_.notify_all();
}

std::optional<Result<FullLayout>> Beside::wait() {
  std::unique_lock lock(mutex_);
  if (!asked_) return std::nullopt;
  ready_.wait(lock, [this] { return made_.has_value(); });
  std::optional<Result<FullLayout>> ready = std::move(made_);
  made_.reset();
  asked_ = false;
  return ready;
}

std::vector<Told> Beside::take_told() {
  const std::lock_guard lock(mutex_);
  return std::exchange(told_, {});
}

void Beside::work() {
  while (true) {
    bool asked = false;
    std::vector<State> old;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] {
        return end_ || (asked_ && !made_) || told_.size() >= kMostWaiting || !dropped_.empty();
      });
      if (end_) return;
      old = std::exchange(dropped_, {});
      asked = asked_ && !made_;
    }
    old.clear();
    // What waits while a layout is ready comes after it, for the one who takes it to know.
    if (asked) {
      make();
    } else {
      for (const Told& told : take_told()) live::tell(rules_, told);
    }
  }
}

void Beside::make() {
  while (true) {
    for (const Told& told : take_told()) live::tell(rules_, told);
    auto made = full_layout(rules_, source_, search_);
    bool right = made.has_value();
    while (true) {
      std::vector<Told> later;
      {
        const std::lock_guard lock(mutex_);
        if (end_) return;
        later = std::exchange(told_, {});
        if (later.empty() && (right || !made)) {
          made_.emplace(std::move(made));
          ready_.notify_all();
          return;
        }
      }
      for (const Told& told : later) {
        live::tell(rules_, told);
        right = right && live::tell(made->state, told, most_);
      }
      if (!right && made) break;  // too much for it: once more
    }
  }
}

}  // namespace greynic::optimizer::live
