#include "settings.h"

#include <fmt/core.h>

#include <algorithm>

#include "greynic/statistics/random.h"

namespace greynic::causal {
namespace {

constexpr std::uint64_t kOrderSeed = 0x6d6178;  // any fixed number: rows must not follow names

}  // namespace

Result<Settings> Settings::create(Session& session, const Configuration& baseline,
                                  const Configuration& wall) {
  Settings settings(session, baseline, wall);
  for (const auto& [name, level] : wall.levels()) {
    const FactorValue* other = baseline.find(name);
    if (other == nullptr || *other != level) {
      settings.factors_.push_back(name);
      continue;
    }
    const Factor* factor = session.campaign().find(name);
    if (factor != nullptr && factor->levels.size() > 1) settings.shared_.push_back(name);
  }
  if (settings.factors_.size() > kMostSettings) {
    return fail(ErrorCode::kTooBig,
                fmt::format("the wall differs from the baseline in {} factors; {} are the most. "
                            "Choose a baseline nearer to it",
                            settings.factors_.size(), kMostSettings));
  }
  if (settings.factors_.size() + settings.shared_.size() > kMostSettings) settings.shared_.clear();
  statistics::Random random(kOrderSeed);
  for (std::size_t i = settings.factors_.size(); i > 1; --i) {
    std::swap(settings.factors_[i - 1],
              settings.factors_[random.below(static_cast<std::uint32_t>(i))]);
  }
  for (std::size_t i = 0; i < settings.factors_.size(); ++i) {
    const Factor* factor = session.campaign().find(settings.factors_[i]);
    settings.conditional_.push_back(!baseline.contains(settings.factors_[i]) ||
                                    (factor != nullptr && !factor->only_if.empty()));
    settings.all_.set(i);
  }
  return settings;
}

std::optional<Configuration> Settings::configuration_of(const Set& set) const {
  Configuration part = baseline_;
  bool conditions = false;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (set.test(i)) part.set(factors_[i], *wall_.find(factors_[i]));
    conditions = conditions || conditional_[i];
  }
  const Laboratory& laboratory = session_->laboratory();
  if (!laboratory.allows || laboratory.allows(part)) return part;
  if (!conditions || !laboratory.complete) return std::nullopt;
  // Factors that exist under a condition follow from the others.
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (conditional_[i] && !set.test(i)) part.erase(factors_[i]);
  }
  if (auto whole = laboratory.complete(part)) return whole;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (conditional_[i]) part.erase(factors_[i]);
  }
  return laboratory.complete(part);
}

std::optional<Id> Settings::id_of(const Set& set) {
  const auto found = ids_.find(set);
  if (found == ids_.end()) {
    const auto configuration = configuration_of(set);
    return ids_[set] =
               configuration ? std::optional(session_->id_of(*configuration)) : std::nullopt;
  }
  if (found->second && session_->refused(*found->second)) return std::nullopt;
  return found->second;
}

Id Settings::known_id(const Set& set) {
  (void)id_of(set);
  const auto found = ids_.find(set);
  return found->second ? *found->second : session_->baseline();
}

std::vector<std::pair<Set, Id>> Settings::known() const {
  std::vector<std::pair<Set, Id>> all;
  for (const auto& [set, id] : ids_) {
    if (id) all.emplace_back(set, *id);
  }
  return all;
}

Settings::Sides Settings::sides_of(Id id) const {
  const Configuration& configuration = session_->configuration(id);
  const auto same = [](const FactorValue* a, const FactorValue* b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  };
  Sides sides{.id = id, .as_wall = {}, .as_baseline = {}};
  for (std::size_t i = 0; i < size() + shared(); ++i) {
    const std::string& factor = i < size() ? factors_[i] : shared_[i - size()];
    const FactorValue* level = configuration.find(factor);
    sides.as_wall.set(i, same(level, wall_.find(factor)));
    sides.as_baseline.set(i, same(level, baseline_.find(factor)));
  }
  return sides;
}

std::vector<Settings::Sides> Settings::clear(double evidence) {
  std::vector<Sides> clear;
  sides_.resize(session_->asked());
  for (Id id = 0; id < session_->asked(); ++id) {
    if (session_->tests_of(id) == 0 || session_->evidence(id) > evidence) continue;
    if (!sides_[id]) sides_[id] = sides_of(id);
    clear.push_back(*sides_[id]);
  }
  return clear;
}

std::optional<Id> Settings::id_of(const Configuration& configuration) {
  const Laboratory& laboratory = session_->laboratory();
  if (laboratory.allows && !laboratory.allows(configuration)) return std::nullopt;
  const Id id = session_->id_of(configuration);
  return session_->refused(id) ? std::nullopt : std::optional(id);
}

/// The least that can be added to `from` on the way to `to`, where no single setting can.
Set Settings::smallest_step(const Set& from, const Set& to) {
  Set step = to;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!step.test(i) || from.test(i)) continue;
    Set less = step;
    less.reset(i);
    if (less != from && id_of(less)) step = less;
  }
  return step;
}

Growth Settings::grow(const Set& from, const Set& to) {
  Growth growth{.sets = {from}};
  Set now = from;
  while (now != to) {
    const Set before = now;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!to.test(i) || now.test(i)) continue;
      Set more = now;
      more.set(i);
      if (more != to && !id_of(more)) continue;
      now = more;
      growth.sets.push_back(now);
    }
    if (now == before) {
      now = smallest_step(now, to);
      growth.sets.push_back(now);
    }
  }
  return growth;
}

Set Settings::closure(const Set& wanted, const Set& top, const Growth& path) {
  if (id_of(wanted)) return wanted;
  Set closed = top;
  for (std::size_t step = path.sets.size(); step-- > 1;) {
    const Set added = path.added(step) & ~wanted;
    const Set less = closed & ~added;
    if (added.any() && id_of(less)) closed = less;
  }
  return closed;
}

Set Settings::without(const Set& healed) {
  const Set rest = all_ & ~healed;
  if (id_of(rest)) return rest;
  Set now;
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!rest.test(i) || now.test(i)) continue;
      Set more = now;
      more.set(i);
      if (!id_of(more)) continue;
      now = more;
      grew = true;
    }
  }
  return now;
}

}  // namespace greynic::causal
