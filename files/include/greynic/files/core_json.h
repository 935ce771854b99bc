#pragma once

/// The core types as JSON, in the one spelling that every file format uses.

#include <nlohmann/json.hpp>

#include "greynic/core/campaign.h"
#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"
#include "greynic/core/observation.h"

namespace greynic::files {

[[nodiscard]] nlohmann::json to_json(const FactorValue& value);
[[nodiscard]] nlohmann::json to_json(const Configuration& configuration);
[[nodiscard]] Result<Configuration> configuration_from_json(const nlohmann::json& object,
                                                            const std::string& source,
                                                            const std::string& json_path);

/// {"ipv4_src":"10.1.2.0/24","l4_dst_port":"443"}: "value" for exact, "value/mask" or "addr/len"
/// else.
[[nodiscard]] nlohmann::json to_json(const Match& match);
[[nodiscard]] Result<Match> match_from_json(const nlohmann::json& object, const std::string& source,
                                            const std::string& json_path);
/// {"ipv4_src":"0xffffff00"}
[[nodiscard]] nlohmann::json to_json(const Mask& mask);
[[nodiscard]] Result<Mask> mask_from_json(const nlohmann::json& object, const std::string& source,
                                          const std::string& json_path);
/// [{"name":"m0","fields":["ipv4_dst"],"bits":"prefix","hop":"server_decap"}], as campaigns and
/// cover models write it; `list` fits the schema and stands at /masks.
[[nodiscard]] Result<std::vector<MaskGroup>> mask_groups_from_json(const nlohmann::json& list,
                                                                   const std::string& source);
/// {"forward":"p1"}, {"drop":true}, {"jump":3}, {"set_field":"reg0","to":"0x1","bits":"0xff"},
/// {"vxlan_encap":100,"options":"..."}, {"vxlan_decap":true}, {"push_vlan":5}, {"pop_vlan":true},
/// {"count":true}, {"meter":1}, {"other":"ct(commit)"}
[[nodiscard]] nlohmann::json to_json(const Action& action);
[[nodiscard]] Result<Action> action_from_json(const nlohmann::json& object,
                                              const std::string& source,
                                              const std::string& json_path);

/// The layout format of docs/formats/layout.md.
[[nodiscard]] nlohmann::json to_json(const Layout& layout);
[[nodiscard]] Result<Layout> layout_from_json(const nlohmann::json& document,
                                              const std::string& source);
/// Of a file's text: as by its tree, in less time and memory.
[[nodiscard]] Result<Layout> layout_from_text(std::string_view text, const std::string& source);
[[nodiscard]] Result<Layout> read_layout(const std::string& path);
[[nodiscard]] Result<void> write_layout(const Layout& layout, const std::string& path);

/// A layout for each model of a fleet, or a layout file, which is for all: docs/formats/layout.md.
[[nodiscard]] nlohmann::json to_json(const ModelLayouts& layouts);
[[nodiscard]] Result<ModelLayouts> model_layouts_from_json(const nlohmann::json& document,
                                                           const std::string& source);
[[nodiscard]] Result<ModelLayouts> model_layouts_from_text(std::string_view text,
                                                           const std::string& source);
[[nodiscard]] Result<ModelLayouts> read_model_layouts(const std::string& path);
[[nodiscard]] Result<void> write_model_layouts(const ModelLayouts& layouts,
                                               const std::string& path);

/// One observation as exec: answers and jsonl exports spell it: configuration, outcome, measures as
/// plain numbers ("bandwidth_gbps": 91.2), counters, histogram buckets.
[[nodiscard]] nlohmann::json to_json(const Observation& observation);
[[nodiscard]] Result<Observation> observation_from_json(const nlohmann::json& object,
                                                        const std::string& source,
                                                        const std::string& json_path);

}  // namespace greynic::files
