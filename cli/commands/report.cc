#include <memory>

#include "command.h"
#include "greynic/loop/report_run.h"

namespace greynic::cli {
namespace {

struct ReportFlags {
  std::string run;
  std::string model;
  std::string title;
  std::string out;
};

int report(const ReportFlags& flags) {
  auto store = results::RunStore::open_to_read(flags.run);
  if (!store) return tell(store.error());
  auto model = loop::model_of(*store, flags.run, flags.model);
  if (!model) return tell(model.error());
  const auto written = loop::write_report(*store, flags.run, model->get(), flags.title, flags.out);
  if (!written) return tell(written.error());
  print("{}\n", flags.out);
  return 0;
}

}  // namespace

void add_report(Program& program) {
  auto flags = std::make_shared<ReportFlags>();
  Command command = program.command("report", "Write a run as one HTML file with pictures",
                                    "  greynic report run.db -o report.html\n"
                                    "  greynic report run.db --model model.json -o report.html");
  command.option("run", flags->run, "Run file").required();
  command
      .option("-o,--out", flags->out, "HTML file to write; it needs no network and no other file")
      .required()
      .writes();
  command.option("--model", flags->model,
                 "Model file or published:NAME to show; without it: the model kept with the run");
  command.option("--title", flags->title, "Heading; without it: the campaign's name");
  command.run([flags] { return report(*flags); });
}

}  // namespace greynic::cli
