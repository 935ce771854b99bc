#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"
#include "greynic/language/array_file.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {

using nlohmann::json;

std::string cover_to_json_text(const language::CoverModel& model, const ModelCover& cover,
                               int strength) {
  json rows = json::array();
  for (const std::vector<int>& row : cover.rows) {
    json cells = json::array();
    for (std::size_t p = 0; p < row.size(); ++p) {
      cells.push_back(row[p] < 0
                          ? json(nullptr)
                          : json(model.parameters[p].levels[static_cast<std::size_t>(row[p])]));
    }
    rows.push_back(std::move(cells));
  }
  json parameters = json::array();
  for (const language::ModelParameter& parameter : model.parameters)
    parameters.push_back(parameter.name);
  const Cover& summary = cover.summary;
  json document = {{"version", 1},
                   {"parameters", std::move(parameters)},
                   {"rows", std::move(rows)},
                   {"summary",
                    {{"strength", strength},
                     {"rows", cover.rows.size()},
                     {"lower_bound", summary.lower_bound},
                     {"lower_bound_reason", summary.lower_bound_reason},
                     {"tuples_covered", summary.tuples_covered},
                     {"tuples_infeasible", summary.tuples_infeasible},
                     {"full", summary.full},
                     {"deadline_reached", summary.deadline_reached},
                     {"seconds", summary.seconds}}}};
  if (const auto cost = language::cost_of(model, cover.rows)) document["summary"]["cost"] = *cost;
  return files::json_text(document) + "\n";
}

}  // namespace greynic::testgen
