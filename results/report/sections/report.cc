#include "greynic/report/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "greynic/core/units.h"
#include "greynic/files/json_file.h"
#include "greynic/statistics/mean.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

Result<std::map<std::string, nlohmann::json>> read_documents(const results::RunStore& store,
                                                             const ReportOptions& options) {
  auto texts = store.documents();
  if (!texts) return pass_on(texts);
  if (!options.model_text.empty()) (*texts)["model"] = options.model_text;
  // One explanation is shown: the tested one, where there is one.
  auto explanation = store.best_explanation();
  if (!explanation) return pass_on(explanation);
  texts->erase(results::kHypotheses);
  if (!explanation->empty()) (*texts)[results::kExplanation] = std::move(*explanation);
  std::map<std::string, nlohmann::json> documents;
  for (const auto& [kind, text] : *texts) {
    auto document =
        files::parse_json(text, fmt::format("{} (its kept {})", options.run_path, kind));
    if (!document) return pass_on(document);
    documents[kind] = std::move(*document);
  }
  return documents;
}

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
/// held against.
const Configuration& best_of(const Content& content) {
  const int direction = better_direction(content.metric) == Better::kLess ? -1 : 1;
  const results::Group* best = &content.groups.front();
  double most = -std::numeric_limits<double>::infinity();
  for (const results::Group& group : content.groups) {
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, content.metric));
    if (mean.count == 0 || direction * mean.value <= most) continue;
    most = direction * mean.value;
    best = &group;
  }
  return *best->configuration;
}

void add_cards(const Content& content, Page& page) {
  std::size_t measured = 0;
  for (const Observation& observation : content.observations) {
    measured += observation.outcome == Outcome::kMeasured ? 1 : 0;
  }
  const std::size_t broken = content.observations.size() - measured;
  page.card("Target", content.header.target, fmt::format("seed {}", content.header.seed));
  page.card("Observations", std::to_string(content.observations.size()),
            fmt::format("{} configurations{}", content.groups.size(),
                        broken == 0 ? ", all measured" : fmt::format(", {} not measured", broken)),
            broken == 0 ? "" : "warn");
  for (const results::Group& group : content.groups) {
    if (*group.configuration != content.baseline || content.metric.empty()) continue;
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, content.metric));
    if (mean.count > 0) {
      page.card(content.campaign ? "Baseline" : "Best",
                fmt::format("{} {}", number(mean.value), unit_of(content.metric)), content.metric);
    }
  }
  if (const auto* explanation = content.document("explanation")) {
    const std::size_t walls = explanation->value("walls", nlohmann::json::array()).size();
    const std::size_t causes = explanation->value("causes", nlohmann::json::array()).size();
    page.card("Walls", std::to_string(walls),
              fmt::format("{} cause{} found", causes, causes == 1 ? "" : "s"),
              walls == 0 ? "good" : "bad");
  }
  if (const auto* gain = content.document("gain")) {
    const double before = gain->value("before", 0.0);
    const double after = gain->value("after", 0.0);
    if (before > 0.0 && after > 0.0) {
      page.card("Gain", fmt::format("{:.2f} ×", after / before),
                fmt::format("{} → {} {}", number(before), number(after),
                            unit_of(gain->value("metric", content.metric))),
                after >= before ? "good" : "bad");
    }
  }
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

Result<std::string> report_html(const results::RunStore& store, const ReportOptions& options) {
  Content content;
  content.options = options;
  content.header = store.header();
  auto observations = store.observations();
  if (!observations) return pass_on(observations);
  if (observations->empty()) {
    return fail(
        ErrorCode::kBadInput,
        options.run_path + ": the run holds no observation yet; `greynic run` goes on with it");
  }
  content.observations = std::move(*observations);
  auto documents = read_documents(store, options);
  if (!documents) return pass_on(documents);
  content.documents = std::move(*documents);
  if (!content.header.campaign_text.empty()) {
    auto campaign = store.campaign();
    if (!campaign) return pass_on(campaign);
    content.campaign = std::move(*campaign);
  }
  content.columns = results::columns_of(content.observations);
  content.groups = results::group_by_configuration(content.observations);
  // A plan completes the campaign's baseline and puts it first, so the first configuration is it.
  content.baseline = content.observations.front().asked;
  choose_metrics(content);
  if (!content.campaign) content.baseline = best_of(content);

  Page page(options.title.empty() ? content.header.campaign_name : options.title);
  try {
    add_cards(content, page);
    add_walls(content, page);
    add_causes(content, page);
    add_effects(content, page);
    add_latency(content, page);
    add_model(content, page);
    add_layout(content, page);
    add_data(content, page);
    add_other_documents(content, page);
    add_provenance(content, page);
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: a kept document is not as its format says: {}", options.run_path,
                            error.what()));
  }
  return page.text();
}

}  // namespace greynic::report
