#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/model_file.h"
#include "greynic/files/json_file.h"
#include "surrogate/model.h"

namespace greynic::model {

using nlohmann::json;

std::string SurrogateModel::to_json_text() const {
  json axes = json::array();
  for (const Axis& axis : state_.axes) {
    axes.push_back({{"factor", axis.factor},
                    {"level", axis.level},
                    {"logarithmic", axis.logarithmic},
                    {"centre", axis.centre},
                    {"scale", axis.scale}});
  }
  json processes = json::object();
  for (const auto& [name, p] : state_.processes) {
    processes[name] = {{"mean", p.mean},      {"signal", p.signal},   {"slope", p.slope},
                       {"noise", p.noise},    {"lengths", p.lengths}, {"inputs", p.inputs},
                       {"targets", p.targets}};
  }
  json document = file_head(law(), state_);
  document["axes"] = axes;
  document["processes"] = processes;
  return files::json_text(document, 1) + "\n";
}

Result<std::unique_ptr<Model>> surrogate_from_json(const json& document,
                                                   const std::string& source) {
  SurrogateState state;
  if (auto head = read_file_head(document, source, state); !head) return pass_on(head);
  for (const json& axis : document.at("axes")) {
    state.axes.push_back({axis.at("factor").get<std::string>(), axis.at("level").get<std::string>(),
                          axis.at("logarithmic").get<bool>(), axis.at("centre").get<double>(),
                          axis.at("scale").get<double>()});
    if (state.axes.back().scale == 0.0) {
      return files::bad_value(source, "/axes", "a scale must not be 0");
    }
  }
  for (const auto& [name, object] : document.at("processes").items()) {
    Process p;
    p.mean = object.at("mean").get<double>();
    p.signal = object.at("signal").get<double>();
    p.slope = object.at("slope").get<double>();
    p.noise = object.at("noise").get<double>();
    p.lengths = object.at("lengths").get<std::vector<double>>();
    p.inputs = object.at("inputs").get<std::vector<std::vector<double>>>();
    p.targets = object.at("targets").get<std::vector<double>>();
    const std::string path = "/processes/" + name;
    const bool shaped =
        p.lengths.size() == state.axes.size() && p.inputs.size() == p.targets.size() &&
        std::all_of(p.inputs.begin(), p.inputs.end(),
                    [&](const auto& row) { return row.size() == state.axes.size(); }) &&
        std::all_of(p.lengths.begin(), p.lengths.end(), [](double x) { return x > 0.0; });
    if (!shaped || p.inputs.empty()) {
      return files::bad_value(source, path, "inputs, targets, lengths and axes disagree in size");
    }
    if (!p.prepare()) return files::bad_value(source, path, "is no valid covariance");
    state.processes.emplace(name, std::move(p));
  }
  return std::make_unique<SurrogateModel>(std::move(state));
}

}  // namespace greynic::model
