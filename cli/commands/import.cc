#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/files/shipped.h"
#include "greynic/loop/import_run.h"

namespace greynic::cli {
namespace {

struct ImportFlags {
  std::vector<std::string> logs;
  std::string pattern;
  std::string json_unit;
  std::string out;
  std::string command;  ///< as typed
  bool json = false;
};

int import(const ImportFlags& flags) {
  results::PerftestOptions options;
  options.name_pattern = flags.pattern;
  options.json_unit = results::perftest_unit_named(flags.json_unit);
  std::vector<std::string> logs;
  for (const std::string& log : flags.logs) logs.push_back(files::shipped_file("examples", log));
  const auto import = loop::import_run(logs, options, flags.out, flags.command);
  if (!import) return tell(import.error());
  for (const std::string& warning : import->warnings) say("warning: " + warning);

  std::map<std::string, std::size_t> outcomes;
  std::map<std::string, std::size_t> measures;
  for (const Observation& observation : import->observations) {
    ++outcomes[std::string(to_string(observation.outcome))];
    for (const auto& [name, measure] : observation.measures) ++measures[name];
  }
  if (flags.json) {
    const nlohmann::json document = {{"run", flags.out},
                                     {"logs", flags.logs.size()},
                                     {"observations", import->observations.size()},
                                     {"outcomes", outcomes},
                                     {"measures", measures},
                                     {"warnings", import->warnings}};
    put_json(document);
    return 0;
  }
  print("run           {}\nlogs          {}\nobservations  {}\n", flags.out, flags.logs.size(),
        import->observations.size());
  for (const auto& [name, count] : measures) print("  {:<26}{:>8}\n", name, count);
  return 0;
}

}  // namespace

void add_import(Program& program) {
  auto flags = std::make_shared<ImportFlags>();
  Command command =
      program.command("import", "Turn logs of other tools into a run",
                      "  greynic import perftest ib_write_bw.log -o run.db\n"
                      "  greynic import perftest logs/*.log -o run.db --name-pattern \\\n"
                      "    'cen_{client_encap_masks}_sde_{server_decap_masks}_{*}.log'");
  command.needs_command();
  Command perftest =
      command.command("perftest", "Import logs of linux-rdma/perftest: text tables and JSON");
  perftest.option("logs", flags->logs, "Log files of the client").required();
  perftest.option("--name-pattern", flags->pattern,
                  "Reads settings from file names: {factor} takes its level, {*} takes anything");
  perftest
      .option("--json-unit", flags->json_unit, "Bandwidth unit of JSON logs that do not name it")
      .choices({"MiB/s", "Gb/s"});
  perftest.option("-o,--out", flags->out, "Run file to make").required().writes();
  perftest.flag("--json", flags->json, "Summary as JSON on stdout");
  perftest.run([flags, &program] {
    flags->command = program.command_line();
    return import(*flags);
  });
}

}  // namespace greynic::cli
