#include "explain_input.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/results/store.h"

namespace greynic::loop {

bool is_json(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  return static_cast<bool>(file >> first) && first == '{';
}

Result<Configuration> read_levels(const Campaign& campaign, const std::string& path) {
  auto text = files::read_text(path);
  if (!text) return pass_on(text);
  auto document = files::parse_json(*text, path);
  if (!document) return pass_on(document);
  if (!document->is_object()) {
    return files::bad_value(path, "", "an object is expected: {\"factor\": level, ...}");
  }
  auto levels = files::configuration_from_json(*document, path, "");
  if (!levels) return pass_on(levels);
  for (const auto& [name, level] : levels->levels()) {
    const Factor* factor = campaign.find(name);
    if (factor == nullptr) {
      return files::bad_value(path, "/" + name,
                              "is not a factor of campaign " + campaign.source + "; remove it");
    }
    const FactorValue* usual = campaign.baseline.find(name);
    const bool known =
        std::find(factor->levels.begin(), factor->levels.end(), level) != factor->levels.end() ||
        (usual != nullptr && *usual == level);
    if (known) continue;
    std::vector<std::string> names;
    for (const FactorValue& one : factor->levels) names.push_back(to_string(one));
    return files::bad_value(path, "/" + name,
                            fmt::format("{} is not a level of this factor; choose one of {}",
                                        to_string(level), fmt::join(names, ", ")));
  }
  return levels;
}

Result<std::vector<Observation>> observations_of(const Campaign& campaign, const std::string& run) {
  auto store = results::RunStore::open_to_read(run);
  if (!store) return pass_on(store);
  auto observations = store->observations();
  if (!observations) return observations;
  for (const Observation& one : *observations) {
    for (const auto& [name, level] : one.asked.levels()) {
      if (campaign.find(name) != nullptr || campaign.baseline.contains(name)) continue;
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: it varies {}, which is no factor of {}; give the log of that "
                              "campaign",
                              run, name, campaign.source));
    }
  }
  return observations;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "greynic_XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace greynic::loop
