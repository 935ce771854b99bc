#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "greynic/files/json_file.h"
#include "greynic/files/shipped.h"
#include "greynic/model/grid.h"
#include "greynic/model/model.h"
#include "greynic/model/workload.h"

namespace greynic::cli {
namespace {

struct PredictFlags {
  std::string model;
  std::string at;
  std::string grid;
  std::string workload;
  bool json = false;
};

nlohmann::json to_json(const model::Prediction& prediction) {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [name, measure] : prediction.measures) {
    document[name] = {{"value", measure.value}, {"low", measure.low}, {"high", measure.high}};
  }
  document["extrapolated"] = prediction.extrapolated;
  document["distance"] = prediction.distance;
  document["outside"] = prediction.outside;
  document["notes"] = prediction.notes;
  document["law"] = prediction.law;
  return document;
}

void print_table(const model::Prediction& prediction) {
  print("{:<22} {:>12} {:>12} {:>12}\n", "law " + prediction.law, "value", "low 95 %", "high 95 %");
  for (const auto& [name, measure] : prediction.measures) {
    print("{:<22} {:>12.4g} {:>12.4g} {:>12.4g}\n", name, measure.value, measure.low, measure.high);
  }
  if (!prediction.extrapolated) return;
  print("extrapolated: {:.2f} widths outside of what was fitted\n", prediction.distance);
  for (const std::string& factor : prediction.outside) print("  {}\n", factor);
}

/// A factor that neither greynic nor the law knows is a typing error. One that is known but does
/// not matter to the law is answered all the same, and said.
Result<void> check_factor(const model::Model& model, const std::string& factor) {
  const auto inputs = model.inputs();
  if (std::find(inputs.begin(), inputs.end(), factor) != inputs.end()) return {};
  if (find_factor(factor) == nullptr) {
    return fail(ErrorCode::kBadInput, fmt::format("no factor is called '{}'; the law reads {}",
                                                  factor, fmt::join(inputs, ", ")));
  }
  say(fmt::format("note: the {} law does not read {}", model.law(), factor));
  return {};
}

/// One line a cell: levels, then value, low and high of each measure, then the distance.
int run_grid(const model::Model& loaded, const PredictFlags& flags) {
  const auto axes = model::parse_grid(flags.grid);
  if (!axes) return tell(axes.error());
  for (const auto& axis : *axes) {
    if (const auto known = check_factor(loaded, axis.factor); !known) return tell(known.error());
  }
  const auto grid = model::predict_grid(loaded, *axes);
  if (!grid) return tell(grid.error());
  if (!flags.json) {
    for (const auto& axis : *axes) print("{},", axis.factor);
    for (const auto& column : grid->columns) {
      print("{0},{0}_low,{0}_high,", column.measure);
    }
    print("distance\n");
  }
  for (std::size_t cell = 0; cell < grid->cells; ++cell) {
    const Configuration configuration = model::grid_cell(*axes, cell);
    if (flags.json) {
      nlohmann::json row = {{"extrapolated", grid->distance[cell] > 0.0},
                            {"distance", grid->distance[cell]}};
      for (const auto& [name, level] : configuration.levels()) {
        row["configuration"][name] = to_string(level);
      }
      for (const auto& column : grid->columns) {
        row[column.measure] = {
            {"value", column.value[cell]}, {"low", column.low[cell]}, {"high", column.high[cell]}};
      }
      print("{}\n", files::json_text(row));
      continue;
    }
    for (const auto& axis : *axes) print("{},", to_string(*configuration.find(axis.factor)));
    for (const auto& column : grid->columns) {
      print("{:.6g},{:.6g},{:.6g},", column.value[cell], column.low[cell], column.high[cell]);
    }
    print("{:.4g}\n", grid->distance[cell]);
  }
  return 0;
}

nlohmann::json to_json(const model::PredictedMeasure& measure) {
  return {{"value", measure.value}, {"low", measure.low}, {"high", measure.high}};
}

int run_workload(const model::Model& loaded, const PredictFlags& flags) {
  const auto workload = model::read_workload(files::shipped_file("examples", flags.workload));
  if (!workload) return tell(workload.error());
  std::set<std::string> named;
  for (const auto& flow : workload->flows) {
    for (const auto& [name, level] : flow.configuration.levels()) {
      if (!named.insert(name).second) continue;
      if (const auto known = check_factor(loaded, name); !known) {
        return tell(
            known.error().while_doing(flags.workload + ": flow '" + flow.name + "'").value());
      }
    }
  }
  const auto prediction = model::predict_workload(loaded, *workload);
  if (!prediction) {
    return tell({prediction.error().code, flags.workload + ": " + prediction.error().message});
  }
  if (flags.json) {
    nlohmann::json document = {{"flows", nlohmann::json::array()},
                               {"sides", nlohmann::json::array()}};
    for (const auto& flow : prediction->flows) {
      document["flows"].push_back({{"name", flow.name},
                                   {"bandwidth_gbps", to_json(flow.bandwidth_gbps)},
                                   {"latency_us_p50", to_json(flow.latency_us_p50)},
                                   {"latency_us_p99", to_json(flow.latency_us_p99)},
                                   {"share_granted", flow.share_granted},
                                   {"limited_by", flow.limited_by},
                                   {"extrapolated", flow.extrapolated},
                                   {"distance", flow.distance}});
    }
    for (const auto& side : prediction->sides) {
      document["sides"].push_back({{"host", side.host},
                                   {"side", side.sends ? "sends" : "receives"},
                                   {"busy_share", side.busy_share}});
    }
    put_json(document);
    return 0;
  }
  print("{:<16} {:>10} {:>22} {:>10} {:>10} {:>9}  {}\n", "flow", "Gbit/s", "95 %", "p50 us",
        "p99 us", "granted", "limited by");
  for (const auto& flow : prediction->flows) {
    print("{:<16} {:>10.4g} {:>10.4g} -{:>10.4g} {:>10.4g} {:>10.4g} {:>7.1f} %  {}{}\n", flow.name,
          flow.bandwidth_gbps.value, flow.bandwidth_gbps.low, flow.bandwidth_gbps.high,
          flow.latency_us_p50.value, flow.latency_us_p99.value, 100.0 * flow.share_granted,
          flow.limited_by,
          flow.extrapolated ? fmt::format(" (extrapolated by {:.2f})", flow.distance) : "");
  }
  print("\n{:<16} {:<9} {:>7}\n", "host", "side", "busy");
  for (const auto& side : prediction->sides) {
    print("{:<16} {:<9} {:>5.1f} %\n", side.host, side.sends ? "sends" : "receives",
          100.0 * side.busy_share);
  }
  return 0;
}

int run_predict(const PredictFlags& flags) {
  const auto loaded = model::load(flags.model);
  if (!loaded) return tell(loaded.error());
  if (!flags.grid.empty()) return run_grid(**loaded, flags);
  if (!flags.workload.empty()) return run_workload(**loaded, flags);
  if (flags.at.empty()) {
    return tell({ErrorCode::kBadInput, "predict needs --at, --grid or --workload"});
  }
  const auto configuration = parse_configuration(flags.at);
  if (!configuration) return tell(configuration.error());
  for (const auto& [name, level] : configuration->levels()) {
    if (const auto known = check_factor(**loaded, name); !known) return tell(known.error());
  }
  const auto prediction = (*loaded)->predict(*configuration);
  if (!prediction) return tell(prediction.error());
  for (const std::string& note : prediction->notes) say("note: " + note);
  if (flags.json) {
    put_json(to_json(*prediction));
  } else {
    print_table(*prediction);
  }
  return 0;
}

}  // namespace

void add_predict(Program& program) {
  auto flags = std::make_shared<PredictFlags>();
  Command command = program.command(
      "predict", "Predict bandwidth and latency of a configuration, with intervals",
      "  greynic predict model.json --at "
      "client_encap_masks=20,server_decap_masks=40,operation=SEND,message_bytes=8388608\n"
      "  greynic predict published:cx6 --at server_decap_masks=10 --json\n"
      "  greynic predict model.json --grid 'client_encap_masks=0:40:5,operation=SEND|WRITE' > "
      "grid.csv\n"
      "  greynic predict model.json --workload workload.json");
  command.option("model,--model", flags->model, "Model file, or published:cx4 cx5 cx6 cx7 bf3 e810")
      .required();
  const Option at =
      command.option("--at", flags->at, "One configuration: factor=level,factor=level");
  const Option grid = command.option("--grid", flags->grid,
                                     "A grid of configurations: factor=low:high:step,factor=a|b; "
                                     "prints CSV, or JSON lines with --json");
  const Option workload =
      command.option("--workload", flags->workload, "Workload file: what each of its flows gets");
  at.excludes(grid);
  workload.excludes(at).excludes(grid);
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return run_predict(*flags); });
}

}  // namespace greynic::cli
