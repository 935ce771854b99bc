#include <fmt/core.h>

#include "greynic/core/mask_group.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"

namespace greynic::files {

Result<std::vector<MaskGroup>> mask_groups_from_json(const nlohmann::json& list,
                                                     const std::string& source) {
  std::vector<MaskGroup> groups;
  for (const nlohmann::json& entry : list) {
    MaskGroup group;
    group.name = entry.at("name").get<std::string>();
    group.bits = mask_bits_named(entry.value("bits", "each")).value();
    const auto hop = hop_named(entry.value("hop", std::string(to_string(group.hop))));
    group.hop = hop.value();
    for (const nlohmann::json& text : entry.at("fields")) {
      const auto name = text.get<std::string>();
      const auto field = match_field_named(name);
      if (!field) {
        return bad_value(
            source, fmt::format("/masks/{}/fields", groups.size()),
            fmt::format("unknown match field '{}'; docs/formats/rules.md lists them", name));
      }
      group.fields.push_back(*field);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace greynic::files
