#pragma once

/// What the sections of a report are made from, gathered once.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/report/report.h"
#include "greynic/results/columns.h"
#include "page/page.h"

namespace greynic::report {

struct Content {
  results::RunHeader header;
  std::optional<Campaign> campaign;
  std::vector<Observation> observations;
  results::Columns columns;
  std::vector<results::Group> groups;  ///< point into `observations`
  std::map<std::string, nlohmann::json> documents;
  Configuration baseline;     ///< the campaign's, else the first configuration
  std::string metric;         ///< that walls are judged by
  std::string second_metric;  ///< shown beside it; may be empty
  ReportOptions options;

  [[nodiscard]] const nlohmann::json* document(const std::string& kind) const;
  /// A configuration by the factors that vary in this run.
  [[nodiscard]] std::string short_name(const Configuration& configuration) const;
};

void add_walls(const Content& content, Page& page);
void add_causes(const Content& content, Page& page);
void add_effects(const Content& content, Page& page);
void add_latency(const Content& content, Page& page);
void add_model(const Content& content, Page& page);
void add_layout(const Content& content, Page& page);
void add_other_documents(const Content& content, Page& page);
void add_data(const Content& content, Page& page);
void add_provenance(const Content& content, Page& page);

}  // namespace greynic::report
