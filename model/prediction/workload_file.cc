#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/model/workload.h"

namespace greynic::model {
namespace {

using nlohmann::json;

constexpr std::array<Hop, 4> kHops = {Hop::kClientEncap, Hop::kServerDecap, Hop::kServerEncap,
                                      Hop::kClientDecap};

Result<WorkloadFlow> flow_from(const json& object, const std::string& source,
                               const std::string& here) {
  WorkloadFlow flow;
  flow.name = object.at("name").get<std::string>();
  flow.from = object.at("from").get<std::string>();
  flow.to = object.at("to").get<std::string>();
  if (flow.from == flow.to) return files::bad_value(source, here, "from and to are one host");
  flow.offered_gbps = object.value("offered_gbps", 0.0);
  auto configuration = files::configuration_from_json(object.value("configuration", json::object()),
                                                      source, here + "/configuration");
  if (!configuration) return pass_on(configuration);
  flow.configuration = std::move(*configuration);
  if (!object.contains("packet")) return flow;
  const auto match = files::match_from_json(object.at("packet"), source, here + "/packet");
  if (!match) return pass_on(match);
  for (const FieldMatch& entry : match->fields()) flow.packet.set(entry.field, entry.value);
  flow.has_packet = true;
  return flow;
}

}  // namespace

Result<Workload> read_workload(const std::string& path) {
  const auto document = files::read_json(path, "workload");
  if (!document) return pass_on(document);
  Workload workload;
  const json& flows = document->at("flows");
  for (std::size_t i = 0; i < flows.size(); ++i) {
    auto flow = flow_from(flows[i], path, fmt::format("/flows/{}", i));
    if (!flow) return pass_on(flow);
    workload.flows.push_back(std::move(*flow));
  }
  const json layouts = document->value("layouts", json::object());
  for (const auto& [name, file] : layouts.items()) {
    for (const Hop hop : kHops) {
      if (mask_factor(hop) != name + "_masks") continue;
      const auto layout_path = std::filesystem::path(path).parent_path() / file.get<std::string>();
      auto layout = files::read_layout(layout_path.string());
      if (!layout) return layout.error().while_doing(path + ": at /layouts/" + name);
      workload.layouts[hop] = std::move(*layout);
    }
  }
  return workload;
}

}  // namespace greynic::model
