#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/files/output_file.h"
#include "greynic/target/target.h"
#include "greynic/twin/validation.h"
#include "progress.h"

namespace greynic::cli {
namespace {

struct ValidateFlags {
  std::string target;
  std::string pictures;
  std::uint64_t seed = 1;
  bool json = false;
  bool markdown = false;
};

void print_table(const twin::ValidationReport& report) {
  print("{:>4}  {:<50} {:>11} {:>11} {:>8}  {:<8} {}\n", "item", "curve", "published", "twin",
        "error", "unit", "verdict");
  for (const twin::CheckRow& row : report.rows) {
    const std::string error = row.published != 0 ? fmt::format("{:+.1f} %", 100 * row.error()) : "";
    print("{:>4}  {:<50} {:>11.4g} {:>11.4g} {:>8}  {:<8} {}\n", row.item, row.curve, row.published,
          row.twin, error, row.unit,
          row.passed() ? "accepted"
                       : fmt::format("MISSED, wanted {:.4g} to {:.4g}", row.low, row.high));
  }
  for (const std::string& note : report.notes) print("note: {}\n", note);
  print("{}: {} parameters were fitted to published curves and explain {} published points\n",
        report.model, report.free_parameter_count, report.published_point_count);
}

void print_json(const twin::ValidationReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const twin::CheckRow& row : report.rows) {
    rows.push_back({{"item", row.item},
                    {"curve", row.curve},
                    {"unit", row.unit},
                    {"published", row.published},
                    {"twin", row.twin},
                    {"low", row.low},
                    {"high", row.high},
                    {"passed", row.passed()}});
  }
  const nlohmann::json document = {{"model", report.model},
                                   {"passed", report.passed()},
                                   {"rows", rows},
                                   {"notes", report.notes},
                                   {"free_parameter_count", report.free_parameter_count},
                                   {"published_point_count", report.published_point_count}};
  put_json(document);
}

int run(const ValidateFlags& flags) {
  const auto specs = target::parse_specs(flags.target);
  if (!specs) return tell(specs.error());
  if (specs->size() != 1 || specs->front().kind != "twin" || !specs->front().options.empty()) {
    return tell({ErrorCode::kBadInput,
                 fmt::format("'{}' cannot be validated: name one twin without options, such as "
                             "twin:cx6",
                             flags.target)});
  }
  Progress progress("validating " + flags.target, 1.0);
  const auto report = twin::validate(specs->front().place, flags.seed,
                                     [&](double share) { progress.update(share); });
  progress.clear();
  if (!report) return tell(report.error());
  if (!flags.pictures.empty()) {
    std::error_code error;
    std::filesystem::create_directories(flags.pictures, error);
    for (const twin::Picture& picture : report->pictures) {
      const auto path =
          std::filesystem::path(flags.pictures) / (report->id + "_" + picture.file + ".svg");
      if (auto ok = files::write_text(path, picture.to_svg()); !ok) return tell(ok.error());
    }
    say(fmt::format("{} pictures written to {}", report->pictures.size(), flags.pictures));
  }
  if (flags.markdown) {
    put(report->to_markdown());
  } else if (flags.json) {
    print_json(*report);
  } else {
    print_table(*report);
  }
  return report->passed() ? 0 : 1;
}

}  // namespace

void add_validate(Program& program) {
  auto flags = std::make_shared<ValidateFlags>();
  Command command =
      program.command("validate", "Compare a twin with the curves published for its RNIC",
                      "  greynic validate twin:cx6\n"
                      "  greynic validate twin:cx5 --pictures /tmp/pictures\n"
                      "  greynic validate twin:cx5 --markdown --pictures pictures > cx5.md\n"
                      "  greynic validate twin:my_rnic.json --json");
  command.option("target", flags->target, "The twin, such as twin:cx6").required();
  command.option("--pictures", flags->pictures, "Write one SVG for each curve to this folder");
  command.option("--seed", flags->seed, "Seed of the simulations");
  const Option json = command.flag("--json", flags->json, "JSON on stdout");
  command.flag("--markdown", flags->markdown, "A page's section, with links to the pictures")
      .excludes(json);
  command.run([flags] { return run(*flags); });
}

}  // namespace greynic::cli
