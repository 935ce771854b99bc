#pragma once

/// Configurations between the baseline and a wall: each differing setting is at the wall's level or
/// at the baseline's. A set names those at the wall's level. Constraints forbid some sets, so a
/// question moves whole sets that are allowed:
///
///     forbidden   a at the wall's level with b at the baseline's
///     rows        {} {b} {b,a} {b,a,c}: every step is allowed, b comes before a
///     healing b   heals a with it
///
/// Settings that can only move together are one step of a row: no test can tell them apart.

#include <bitset>
#include <optional>
#include <unordered_map>
#include <vector>

#include "session.h"

namespace greynic::causal {

inline constexpr std::size_t kMostSettings = 256;
using Set = std::bitset<kMostSettings>;

/// Sets that grow from the first to the last, each allowed.
struct Growth {
  std::vector<Set> sets;
  [[nodiscard]] Set added(std::size_t step) const { return sets[step] & ~sets[step - 1]; }
};

class Settings {
 public:
  /// kTooBig beyond 256 settings.
  [[nodiscard]] static Result<Settings> create(Session& session, const Configuration& baseline,
                                               const Configuration& wall);

  [[nodiscard]] std::size_t size() const { return factors_.size(); }
  [[nodiscard]] const std::string& factor(std::size_t setting) const { return factors_[setting]; }
  [[nodiscard]] Set all() const { return all_; }
  [[nodiscard]] const Configuration& wall() const { return wall_; }
  [[nodiscard]] const Configuration& baseline() const { return baseline_; }

  /// The configuration of a set; nothing where it is forbidden, or where the device refused it.
  [[nodiscard]] std::optional<Id> id_of(const Set& set);
  /// The same for a set that was allowed when the row was made.
  [[nodiscard]] Id known_id(const Set& set);
  /// Sets that were asked for and are allowed.
  [[nodiscard]] std::vector<std::pair<Set, Id>> known() const;
  /// Factors of several levels that wall and baseline have at the same one; as bits they come after the
  /// settings.
  [[nodiscard]] std::size_t shared() const { return shared_.size(); }
  /// What a configuration has as the wall has it, and what as the baseline.
  struct Sides {
    Id id = 0;
    Set as_wall;
    Set as_baseline;
  };
  /// Of all configurations whose tests speak for a wall at these log odds or less.
  [[nodiscard]] std::vector<Sides> clear(double evidence);
  /// A whole configuration that the rules allow and the device did not refuse.
  [[nodiscard]] std::optional<Id> id_of(const Configuration& configuration);

  /// From one allowed set to another that holds it.
  [[nodiscard]] Growth grow(const Set& from, const Set& to);
  /// The least allowed set within `top` that holds `wanted`; `path` leads to `top`.
  [[nodiscard]] Set closure(const Set& wanted, const Set& top, const Growth& path);
  /// The largest allowed set that has nothing of `healed`.
  [[nodiscard]] Set without(const Set& healed);

 private:
  Settings(Session& session, const Configuration& baseline, const Configuration& wall)
      : session_(&session), baseline_(baseline), wall_(wall) {}
  [[nodiscard]] std::optional<Configuration> configuration_of(const Set& set) const;
  [[nodiscard]] Sides sides_of(Id id) const;
  [[nodiscard]] Set smallest_step(const Set& from, const Set& to);

  Session* session_;
  Configuration baseline_;
  Configuration wall_;
  std::vector<std::string> factors_;  // in the order in which rows add them
  std::vector<std::string> shared_;
  std::vector<bool> conditional_;
  Set all_;
  std::unordered_map<Set, std::optional<Id>> ids_;
  std::vector<std::optional<Sides>> sides_;  // by configuration
};

}  // namespace greynic::causal
