#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "greynic/model/model.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string model;
  std::string at;
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
  fmt::print("{:<22} {:>12} {:>12} {:>12}\n", "law " + prediction.law, "value", "low 95 %",
             "high 95 %");
  for (const auto& [name, measure] : prediction.measures) {
    fmt::print("{:<22} {:>12.4g} {:>12.4g} {:>12.4g}\n", name, measure.value, measure.low,
               measure.high);
  }
  if (!prediction.extrapolated) return;
  fmt::print("extrapolated: {:.2f} widths outside of what was fitted\n", prediction.distance);
  for (const std::string& factor : prediction.outside) fmt::print("  {}\n", factor);
}

int run_predict(const Flags& flags) {
  const auto loaded = model::load(flags.model);
  if (!loaded) return tell(loaded.error());
  const auto configuration = parse_configuration(flags.at);
  if (!configuration) return tell(configuration.error());
  const auto prediction = (*loaded)->predict(*configuration);
  if (!prediction) return tell(prediction.error());
  for (const std::string& note : prediction->notes) say("note: " + note);
  if (flags.json) {
    fmt::print("{}\n", to_json(*prediction).dump(1));
  } else {
    print_table(*prediction);
  }
  return 0;
}

}  // namespace

void add_predict(CLI::App& root, Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(
      root, "predict", "Predict bandwidth and latency of a configuration, with intervals",
      "  greynic predict model.json --at "
      "client_encap_masks=20,server_decap_masks=40,operation=SEND,message_bytes=8388608\n"
      "  greynic predict published:cx6 --at server_decap_masks=10 --json");
  command->add_option("model", flags->model, "Model file, or published:cx4 cx5 cx6 cx7 bf3 e810")
      ->required();
  command->add_option("--at", flags->at, "Configuration: factor=level,factor=level")->required();
  command->add_flag("--json", flags->json, "JSON on stdout");
  command->callback([flags, &program] { program.exit_code = run_predict(*flags); });
}

}  // namespace greynic::cli
