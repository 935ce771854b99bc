#include "greynic/language/explain_infeasible.h"

#include <fmt/core.h>

#include <chrono>
#include <map>

#include "greynic/language/model_oracle.h"

namespace greynic::language {
namespace {

using Settings = std::vector<ModelOracle::Setting>;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Explains tuples one after the other. What forbids part of one forbids every tuple with that
/// part: a topology that never lets one level be has hundreds of tuples with it.
class Explainer {
 public:
  Explainer(const CoverModel& model, std::function<bool()> stop)
      : model_(model), oracle_(model, /*explaining=*/true), stop_(std::move(stop)) {}

  std::string explain(const Tuple& tuple) {
    Settings settings;
    for (const auto& [parameter, level] : tuple) settings.push_back({parameter, level});
    if (const auto known = forbidden_part(settings)) return line(settings, *known);
    const ModelOracle::Conflict conflict = oracle_.conflict(settings, stop_);
    const auto part = conflict.rules.empty() ? settings : conflict.settings;
    const auto kept = causes_.emplace(part, describe(conflict)).first;
    return line(settings, kept);
  }

 private:
  using Causes = std::map<Settings, std::string>;

  std::optional<Causes::const_iterator> forbidden_part(const Settings& settings) const {
    // A tuple has at most six settings, so 63 parts; small ones first would not find more.
    for (unsigned chosen = 0; chosen < 1U << settings.size(); ++chosen) {
      Settings part;
      for (std::size_t i = 0; i < settings.size(); ++i) {
        if ((chosen >> i & 1U) != 0) part.push_back(settings[i]);
      }
      if (const auto known = causes_.find(part); known != causes_.end()) return known;
    }
    return std::nullopt;
  }

  std::string line(const Settings& settings, Causes::const_iterator cause) const {
    const Settings& part = cause->first;
    const std::string already =
        part.size() == settings.size() ? "" : fmt::format("already {}: ", describe(model_, part));
    return fmt::format("{}: {}{}", describe(model_, settings), already, cause->second);
  }

  const CoverModel& model_;
  ModelOracle oracle_;
  std::function<bool()> stop_;
  Causes causes_;  ///< by the settings that they forbid
};

}  // namespace

Explanations explain_infeasible(const CoverModel& model, const std::vector<Tuple>& tuples,
                                const ExplainOptions& options) {
  const auto now = [&] { return options.clock ? options.clock() : steady_seconds(); };
  const double start = now();
  const auto late = [&] { return now() - start > options.deadline_seconds; };
  Explanations out;
  if (tuples.empty()) return out;
  Explainer explainer(model, late);
  for (const Tuple& tuple : tuples) {
    if (late() && !out.lines.empty()) break;
    out.lines.push_back(explainer.explain(tuple));
    if (options.progress) {
      options.progress(static_cast<double>(out.lines.size()) / static_cast<double>(tuples.size()),
                       out.lines.size());
    }
  }
  out.left = tuples.size() - out.lines.size();
  return out;
}

std::string describe_conflict(const CoverModel& model, const std::vector<int>& levels) {
  std::vector<ModelOracle::Setting> settings;
  for (std::uint32_t p = 0; p < levels.size(); ++p) {
    if (levels[p] >= 0) settings.push_back({p, levels[p]});
  }
  ModelOracle oracle(model, /*explaining=*/true);
  return describe(oracle.conflict(settings));
}

}  // namespace greynic::language
