#pragma once

/// What the sections of a report are made from, gathered once.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/measure.h"
#include "greynic/report/report.h"
#include "greynic/results/columns.h"
#include "greynic/statistics/mean.h"
#include "greynic/web/page.h"

namespace greynic::report {

using namespace web;  // NOLINT(google-build-using-namespace): sections are written in its words

struct Content {
  results::RunHeader header;
  std::optional<Campaign> campaign;
  std::vector<Observation> observations;
  results::Columns columns;
  std::vector<results::Group> groups;  ///< point into `observations`
  std::map<std::string, nlohmann::json> documents;
  /// The campaign's; an import's best configuration; empty where nobody knows which one is best.
  std::optional<Configuration> baseline;
  std::string metric;         ///< that walls are judged by
  std::string second_metric;  ///< shown beside it; may be empty
  ReportOptions options;

  [[nodiscard]] const nlohmann::json* document(const std::string& kind) const;
  /// A configuration by the factors that vary in this run.
  [[nodiscard]] std::string short_name(const Configuration& configuration) const;
  [[nodiscard]] bool is_baseline(const Configuration& configuration) const {
    return baseline && *baseline == configuration;
  }
  /// By the table of measures, else by the campaign's wall; empty when neither knows.
  [[nodiscard]] std::optional<Better> better(const std::string& measure) const;
  /// Names of the configurations that an explanation ordered: none of the campaign's.
  [[nodiscard]] bool was_ordered(const Configuration& configuration) const;
};

/// Fills in what follows from observations and documents: columns, groups, metrics, baseline.
void complete(Content& content);

/// The command as it was typed, or, in runs that do not hold it, one that measures the same.
struct Command {
  std::string text;
  bool as_typed = false;
};
[[nodiscard]] Command command_of(const Content& content);

void add_head(const Content& content, Page& page);
void add_walls(const Content& content, Page& page);
void add_causes(const Content& content, Page& page);
/// Critical path and sensitivity of the worst wall.
void add_around(const Content& content, Page& page);
void add_effects(const Content& content, Page& page);
void add_latency(const Content& content, Page& page);
void add_counters(const Content& content, Page& page);
void add_model(const Content& content, Page& page);
/// The law along each factor and over two of them; part of the model's section.
void add_law_pictures(const Content& content, const std::string& metric, Page& page, Table& table);
void add_layout(const Content& content, Page& page);
void add_gain(const Content& content, Page& page);
void add_data(const Content& content, Page& page);
void add_plan(const Content& content, Page& page);
void add_other_documents(const Content& content, Page& page);
void add_repeat(const Content& content, Page& page);

}  // namespace greynic::report
