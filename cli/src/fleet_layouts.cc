#include "fleet_layouts.h"

#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "greynic/files/core_json.h"
#include "greynic/loop/by_model.h"
#include "greynic/loop/layout_cost.h"
#include "progress.h"

namespace greynic::cli {

int optimize_for_fleet(const FleetLayoutFlags& flags, const RuleSet& rules, const Traffic& traffic,
                       const optimizer::OptimizeOptions& options,
                       const std::vector<ModelLimits>& models) {
  const auto made = loop::optimize_by_model(rules, traffic, options, models, {}, terminal_talk());
  if (!made) return tell(made.error());
  if (!flags.out.empty()) {
    const auto written = files::write_model_layouts(loop::layouts_of(*made), flags.out);
    if (!written) return tell(written.error());
  }
  if (flags.as_json) {
    nlohmann::json document = loop::to_json(made->front().made.made, flags.rules, flags.traffic);
    document["models"] = loop::to_json(*made);
    put_json(document);
    return 0;
  }
  put(loop::to_text(*made));
  std::set<std::string> notes;
  for (const loop::LayoutByModel& one : *made) {
    const optimizer::Proof& proof = one.made.made.proof;
    print("equivalent, for {}: proven for {} layout tables over {} pairs of rules, {} regions\n",
          one.models.front(), proof.tables, proof.pairs, proof.regions);
    notes.insert(one.made.made.notes.begin(), one.made.made.notes.end());
  }
  for (const std::string& note : notes) print("{}\n", note);
  return 0;
}

}  // namespace greynic::cli
