#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "greynic/core/units.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// More rows make the page slow and tell nobody anything; the export has them all.
constexpr std::size_t kMostRows = 5000;

/// Quoted for a shell when it needs to be.
std::string shell_word(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-") ==
          std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_of(const Content& content) {
  if (content.header.target.starts_with("import:")) {
    return fmt::format("greynic import {} LOGS --name-pattern {} -o {}",
                       content.header.target.substr(content.header.target.find(':') + 1),
                       shell_word(content.header.settings.contains("name_pattern")
                                      ? content.header.settings.at("name_pattern")
                                      : ""),
                       shell_word(content.options.run_path));
  }
  std::string command = fmt::format("greynic run {}.json --target {} --seed {}",
                                    shell_word(content.header.campaign_name),
                                    shell_word(content.header.target), content.header.seed);
  for (const auto& [name, value] : content.header.settings) {
    if (name.starts_with("set.")) command += " --set " + shell_word(name.substr(4) + "=" + value);
  }
  return command + " -o again.db";
}

}  // namespace

void add_data(const Content& content, Page& page) {
  page.section("data", "Data");
  Table measures({"measure", ">observations", ">least", ">median", ">most"});
  for (const std::string& name : content.columns.measures) {
    std::vector<double> values;
    for (const Observation& observation : content.observations) {
      if (const auto value = observation.value(name)) values.push_back(*value);
    }
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    measures.add({name, std::to_string(values.size()), number(values.front()),
                  number(values[values.size() / 2]), number(values.back())});
  }
  page.table(measures);
  std::map<std::pair<std::string, std::string>, std::size_t> outcomes;
  for (const Observation& observation : content.observations) {
    if (observation.outcome == Outcome::kMeasured) continue;
    ++outcomes[{std::string(to_string(observation.outcome)), observation.reason}];
  }
  if (!outcomes.empty()) {
    Table table({"not measured", "reason", ">observations"});
    for (const auto& [what, count] : outcomes) {
      table.add({what.first, what.second, std::to_string(count)});
    }
    page.table(table);
  }
  std::vector<std::string> names;
  for (const std::string& factor : content.columns.varied) names.push_back(factor);
  for (const char* fixed : {">repeat", "outcome"}) names.emplace_back(fixed);
  for (const std::string& name : content.columns.measures) names.push_back(">" + name);
  Table table(names);
  for (const Observation& observation : content.observations) {
    if (table.size() == kMostRows) break;
    std::vector<std::string> cells;
    for (const std::string& factor : content.columns.varied) {
      const FactorValue* level = observation.asked.find(factor);
      cells.push_back(level == nullptr ? "" : to_string(*level));
    }
    cells.push_back(std::to_string(observation.repeat));
    cells.emplace_back(to_string(observation.outcome));
    for (const std::string& name : content.columns.measures) {
      const auto value = observation.value(name);
      cells.push_back(value ? number(*value) : "");
    }
    table.add(std::move(cells));
  }
  page.folded(content.observations.size() > kMostRows
                  ? fmt::format("The first {} of {} observations; `greynic export` has all",
                                kMostRows, content.observations.size())
                  : fmt::format("All {} observations", content.observations.size()),
              table.text());
}

void add_other_documents(const Content& content, Page& page) {
  if (const json* plan = content.document("plan"); plan != nullptr && plan->contains("report")) {
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
      table.add(
          {"no covering plan has fewer than", std::to_string(report.value("lower_bound", 0))});
    }
    page.table(table);
  }
  static const std::set<std::string> kShown = {"explanation", "plan",          "model",
                                               "layout",      "layout_before", "gain"};
  for (const auto& [kind, document] : content.documents) {
    if (kShown.contains(kind)) continue;
    page.section("document-" + kind, "Document: " + kind);
    page.folded("As JSON", "<pre>" + escape_markup(document.dump(2)) + "</pre>");
  }
}

void add_provenance(const Content& content, Page& page) {
  page.section("repeat", "How to repeat it");
  page.raw(fmt::format("<pre class=\"command\">{}</pre>\n", escape_markup(command_of(content))));
  Table settings({"setting", "value"});
  settings.add({"run file", content.options.run_path});
  settings.add({"campaign", content.header.campaign_name});
  settings.add({"target", content.header.target});
  settings.add({"seed", std::to_string(content.header.seed)});
  for (const auto& [name, value] : content.header.settings) settings.add({name, value});
  Configuration common = content.observations.front().asked;
  for (const std::string& factor : content.columns.varied) common.erase(factor);
  for (const auto& [factor, level] : common.levels()) {
    settings.add({factor + " (everywhere)", to_string(level)});
  }
  page.table(settings);
  std::map<std::string, std::set<std::string>> environment;
  for (const auto& [name, value] : content.header.environment) environment[name].insert(value);
  for (const Observation& observation : content.observations) {
    for (const auto& [name, value] : observation.environment) environment[name].insert(value);
  }
  if (!environment.empty()) {
    page.raw("<h3>Environment</h3>\n");
    Table table({"name", "value"});
    constexpr std::size_t kMostValues = 4;
    for (const auto& [name, values] : environment) {
      std::string text;
      std::size_t shown = 0;
      for (const std::string& value : values) {
        if (shown++ == kMostValues) break;
        text += (text.empty() ? "" : ", ") + value;
      }
      if (values.size() > kMostValues)
        text += fmt::format(" and {} more", values.size() - kMostValues);
      table.add({name, text});
    }
    page.table(table);
  }
  if (!content.header.campaign_text.empty()) {
    page.folded(fmt::format("The campaign, {}.json", content.header.campaign_name),
                "<pre>" + escape_markup(content.header.campaign_text) + "</pre>");
  }
}

}  // namespace greynic::report
