#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "command.h"
#include "greynic/target/target.h"

namespace greynic::cli {
namespace {

struct DevicesFlags {
  std::string spec;
  bool json = false;
};

int print_all(bool as_json) {
  std::vector<target::Candidate> all;
  std::size_t widest = 0;
  for (const target::Kind& kind : target::kinds()) {
    for (target::Candidate& found : kind.probe()) {
      widest = std::max(widest, found.spec.size());
      all.push_back(std::move(found));
    }
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const target::Candidate& found : all) {
    if (as_json) {
      rows.push_back({{"target", found.spec},
                      {"available", found.available},
                      {"what", found.what},
                      {"why_not", found.why_not},
                      {"remedy", found.remedy}});
      continue;
    }
    print("{:<4} {:<{}}  {}\n", found.available ? "yes" : "no", found.spec, widest, found.what);
    if (!found.available) {
      print("{:<{}}why:    {}\n", "", widest + 7, found.why_not);
      print("{:<{}}remedy: {}\n", "", widest + 7, found.remedy);
    }
  }
  if (as_json) put_json(rows);
  return 0;
}

int print_one(const DevicesFlags& flags) {
  auto opened = target::open(flags.spec);
  if (!opened) return tell(opened.error());
  const target::Info info = (*opened)->info();
  if (flags.json) {
    const nlohmann::json document = {{"target", info.name},
                                     {"description", info.description},
                                     {"factors", info.factors},
                                     {"limits", info.limits},
                                     {"categories", info.categories},
                                     {"environment", info.environment},
                                     {"facts", info.facts}};
    put_json(document);
    return 0;
  }
  print("{}: {}\n", info.name, info.description);
  for (const auto& [name, value] : info.environment) print("  {:<28} {}\n", name, value);
  for (const auto& [name, value] : info.limits) print("  at most {:<20} {}\n", name, value);
  if (!info.facts.empty()) {
    print("\n{:<34} {:>14} {:<20} {:<5} {}\n", "parameter", "value", "unit", "grade", "source");
    for (const auto& row : info.facts) {
      const auto cell = [&](std::size_t i) { return i < row.size() ? row[i] : std::string(); };
      print("{:<34} {:>14} {:<20} {:<5} {}\n", cell(0), cell(1), cell(2), cell(3), cell(4));
    }
  }
  return 0;
}

}  // namespace

void add_devices(Program& program) {
  auto flags = std::make_shared<DevicesFlags>();
  Command command =
      program.command("devices", "What can be tested here; for what cannot, why and the remedy",
                      "  greynic devices\n"
                      "  greynic devices twin:cx6     # its parameters and their sources\n"
                      "  greynic devices verbs:rxe0   # its limits and known traits\n"
                      "  greynic devices --json");
  command.option("target", flags->spec, "Describe this one target");
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return flags->spec.empty() ? print_all(flags->json) : print_one(*flags); });
}

}  // namespace greynic::cli
