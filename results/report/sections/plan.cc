#include <fmt/core.h>

#include <set>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {

using nlohmann::json;

void add_plan(const Content& content, Page& page) {
  const json* plan = content.document("plan");
  if (plan == nullptr || !plan->contains("report")) return;
  const json& report = plan->at("report");
  page.section("plan", "Plan");
  Table table({"", ">configurations"});
  const auto size = [&](const char* label, const char* key) {
    if (report.contains(key)) table.add({label, report.at(key).value("text", std::string())});
  };
  size("the whole space", "raw");
  size("that forward traffic", "after_topology");
  size("that every rule and constraint leaves", "after_constraints");
  table.add({"in the plan", std::to_string(report.value("kept", 0))});
  if (report.value("lower_bound", 0) > 0) {
    table.add({"no covering plan has fewer than", std::to_string(report.value("lower_bound", 0))});
  }
  page.table(table);
}

void add_other_documents(const Content& content, Page& page) {
  static const std::set<std::string> kShown = {"explanation",   "plan", "model",        "layout",
                                               "layout_before", "gain", "optimization", "ordered"};
  for (const auto& [kind, document] : content.documents) {
    if (kShown.contains(kind)) continue;
    page.section("document-" + kind, "Document: " + kind);
    page.folded("As JSON", "<pre>" + escape_markup(files::json_text(document, 2)) + "</pre>");
  }
}

}  // namespace greynic::report
