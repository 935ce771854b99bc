#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "command.h"
#include "greynic/files/json_file.h"
#include "greynic/model/model.h"
#include "reporting.h"

namespace greynic::cli {
namespace {

struct Flags {
  std::string run;
  std::string model;
  std::string title;
  std::string out;
};

/// The model to show: the file named, else the one kept with the run, else none.
Result<std::unique_ptr<model::Model>> load_model(const Flags& flags,
                                                 const results::RunStore& store) {
  if (!flags.model.empty()) return model::load(flags.model);
  auto kept = store.kept("model");
  if (!kept) return pass_on(kept);
  if (kept->empty()) return nullptr;
  // Models are loaded from files; the kept one becomes a file for as long as that takes.
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("greynic-model-{}.json", static_cast<long>(::getpid()));
  if (auto written = files::write_text(path, *kept); !written) return pass_on(written);
  auto loaded = model::load(path.string());
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!loaded) return loaded.error().while_doing(flags.run + ": the model kept with it");
  return loaded;
}

int report(const Flags& flags) {
  auto store = results::RunStore::open_to_read(flags.run);
  if (!store) return tell(store.error());
  auto model = load_model(flags, *store);
  if (!model) return tell(model.error());
  const auto written = write_report(*store, flags.run, model->get(), flags.title, flags.out);
  if (!written) return tell(written.error());
  fmt::print("{}\n", *written);
  return 0;
}

}  // namespace

void add_report(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command =
      program.command("report", "A run as one HTML file with pictures; needs no network",
                      "  greynic report run.db -o report.html\n"
                      "  greynic report run.db --model model.json -o report.html");
  command.option("run", flags->run, "Run file").required();
  command.option("-o,--out", flags->out, "HTML file to write").required();
  command.option("--model", flags->model,
                 "Model file or published:NAME to show; the one kept with the run when absent");
  command.option("--title", flags->title, "Heading; the campaign's name when absent");
  command.run([flags] { return report(*flags); });
}

}  // namespace greynic::cli
