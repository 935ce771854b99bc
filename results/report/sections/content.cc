#include "sections/content.h"

#include <algorithm>

namespace greynic::report {
namespace {

void choose_metrics(Content& content) {
  const auto& measures = content.columns.measures;
  const auto has = [&](std::string_view name) {
    return std::find(measures.begin(), measures.end(), name) != measures.end();
  };
  const std::string bandwidth(measure::kBandwidth);
  const std::string latency(measure::kLatencyP50);
  if (content.campaign && has(content.campaign->wall.metric)) {
    content.metric = content.campaign->wall.metric;
  } else if (has(bandwidth)) {
    content.metric = bandwidth;
  } else if (!measures.empty()) {
    content.metric = measures.front();
  }
  for (const std::string& other : {bandwidth, latency}) {
    if (content.second_metric.empty() && other != content.metric && has(other)) {
      content.second_metric = other;
    }
  }
}

/// An import has no campaign and so no baseline: the best configuration then is what others are
/// held against. Empty when nobody knows which direction is better.
std::optional<Configuration> best_of(const Content& content) {
  const auto better = content.better(content.metric);
  if (!better || *better == Better::kNeither) return std::nullopt;
  std::optional<Configuration> best;
  double best_value = 0.0;
  for (const results::Group& group : content.groups) {
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, content.metric));
    if (mean.count == 0) continue;
    const bool wins = *better == Better::kMore ? mean.value > best_value : mean.value < best_value;
    if (best && !wins) continue;
    best_value = mean.value;
    best = *group.configuration;
  }
  return best;
}

}  // namespace

const nlohmann::json* Content::document(const std::string& kind) const {
  const auto found = documents.find(kind);
  return found == documents.end() || !found->second.is_object() ? nullptr : &found->second;
}

std::string Content::short_name(const Configuration& configuration) const {
  const std::string name = results::name_by(configuration, columns.varied);
  return name.empty() ? configuration.name() : name;
}

std::optional<Better> Content::better(const std::string& measure) const {
  if (const auto known = better_direction(measure)) return known;
  if (!campaign || campaign->wall.metric != measure) return std::nullopt;
  const WallRule& wall = campaign->wall;
  return wall.below || wall.below_baseline_by ? Better::kMore : Better::kLess;
}

bool Content::was_ordered(const Configuration& configuration) const {
  const auto ordered = documents.find("ordered");
  if (ordered == documents.end() || !ordered->second.is_array()) return false;
  const std::string name = configuration.name();
  return std::find(ordered->second.begin(), ordered->second.end(), name) != ordered->second.end();
}

void complete(Content& content) {
  content.columns = results::columns_of(content.observations);
  content.groups = results::group_by_configuration(content.observations);
  choose_metrics(content);
  // A plan completes the campaign's baseline and puts it first, so the first configuration is it.
  content.baseline = content.campaign ? content.observations.front().asked : best_of(content);
}

}  // namespace greynic::report
