#include "greynic/results/export.h"

#include <memory>

#include "command.h"
#include "greynic/files/output_file.h"

namespace greynic::cli {
namespace {

struct ExportFlags {
  std::string run;
  std::string format = "jsonl";
  std::string out;
};

int export_run(const ExportFlags& flags) {
  auto store = results::RunStore::open_to_read(flags.run);
  if (!store) return tell(store.error());
  auto observations = store->observations();
  if (!observations) return tell(observations.error());
  const std::string text = results::export_text(store->header(), *observations,
                                                *results::export_format_named(flags.format));
  if (flags.out.empty()) {
    put_data(text);
    return 0;
  }
  if (auto written = files::write_text(flags.out, text); !written) return tell(written.error());
  say(fmt::format("{} observations written to {}", observations->size(), flags.out));
  return 0;
}

}  // namespace

void add_export(Program& program) {
  auto flags = std::make_shared<ExportFlags>();
  Command command = program.command(
      "export", "Write a run in a format of other tools",
      "  greynic export run.db --format csv -o run.csv\n"
      "  greynic export run.db --format jsonl | jq .bandwidth_gbps\n"
      "  greynic export run.db --format openmetrics\n"
      "  greynic export run.db --format markdown     # one row for each configuration");
  command.option("run", flags->run, "Run file").required();
  command.option("--format", flags->format, "Format to write")
      .choices({"jsonl", "csv", "markdown", "openmetrics", "influx"});
  command.option("-o,--out", flags->out, "File to write; without it: stdout").writes();
  command.run([flags] { return export_run(*flags); });
}

}  // namespace greynic::cli
