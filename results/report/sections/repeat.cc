#include <fmt/core.h>

#include <set>

#include "greynic/results/shell_words.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

/// Runs made before the command was kept: one that measures the same.
std::string reconstructed(const Content& content) {
  if (content.header.target.starts_with("import:")) {
    return fmt::format("greynic import {} LOGS --name-pattern {} -o {}",
                       content.header.target.substr(content.header.target.find(':') + 1),
                       results::shell_word(content.header.settings.contains("name_pattern")
                                               ? content.header.settings.at("name_pattern")
                                               : ""),
                       results::shell_word(content.options.run_path));
  }
  std::string command =
      fmt::format("greynic run {}.json --target {} --seed {}",
                  results::shell_word(content.header.campaign_name),
                  results::shell_word(content.header.target), content.header.seed);
  for (const auto& [name, value] : content.header.settings) {
    if (name.starts_with("set."))
      command += " --set " + results::shell_word(name.substr(4) + "=" + value);
  }
  return command + " -o again.db";
}

/// The machine and the device, and where they changed during the run.
void add_environment(const Content& content, Page& page) {
  std::map<std::string, std::set<std::string>> environment;
  for (const auto& [name, value] : content.header.environment) environment[name].insert(value);
  for (const Observation& observation : content.observations) {
    for (const auto& [name, value] : observation.environment) environment[name].insert(value);
  }
  if (environment.empty()) return;
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

}  // namespace

Command command_of(const Content& content) {
  if (!content.header.command.empty()) return {content.header.command, true};
  return {reconstructed(content), false};
}

void add_repeat(const Content& content, Page& page) {
  page.section("repeat", "How to repeat it");
  page.raw(
      fmt::format("<pre class=\"command\">{}</pre>\n", escape_markup(command_of(content).text)));
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
  add_environment(content, page);
  if (!content.header.campaign_text.empty()) {
    page.folded(fmt::format("The campaign, {}.json", content.header.campaign_name),
                "<pre>" + escape_markup(content.header.campaign_text) + "</pre>");
  }
}

}  // namespace greynic::report
