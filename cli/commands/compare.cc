#include "greynic/results/compare.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "greynic/files/output_file.h"
#include "greynic/results/store.h"

namespace greynic::cli {
namespace {

struct CompareFlags {
  std::string base;
  std::string fresh;
  std::string junit;
  std::string better;
  results::CompareOptions options;
  bool allow_missing = false;
  bool all = false;
  bool json = false;
};

Result<std::vector<Observation>> read(const std::string& path) {
  auto store = results::RunStore::open_to_read(path);
  if (!store) return pass_on(store);
  return store->observations();
}

void print_json(const results::CompareReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const results::Comparison& row : report.comparisons) {
    rows.push_back({{"configuration", row.configuration.name()},
                    {"metric", row.metric},
                    {"verdict", to_string(row.change)},
                    {"base_repeats", row.base_count},
                    {"new_repeats", row.new_count},
                    {"base_mean", row.base_mean},
                    {"new_mean", row.new_mean},
                    {row.is_difference ? "difference" : "change_share", row.effect},
                    {"low", row.effect_low},
                    {"high", row.effect_high},
                    {"p_worse_adjusted", row.p_worse},
                    {"p_better_adjusted", row.p_better},
                    {"reason", row.reason}});
  }
  const nlohmann::json document = {{"version", 1},
                                   {"regressions", report.regressions},
                                   {"method", report.method},
                                   {"not_judged", report.not_judged},
                                   {"only_in_base", report.only_base.size()},
                                   {"only_in_new", report.only_new},
                                   {"comparisons", std::move(rows)}};
  put_json(document);
}

void print_table(const results::CompareReport& report, bool all) {
  print("{:<11}{:<20}{:>11}{:>11}{:>10}  {:<20}{:>9}  {}\n", "verdict", "metric", "base", "new",
        "change", "95 % interval", "p", "configuration");
  std::size_t same = 0;
  for (const results::Comparison& row : report.comparisons) {
    if (row.change == results::Change::kSame) ++same;
    if (row.change == results::Change::kSame && !all) continue;
    const double scale = row.is_difference ? 1.0 : 100.0;
    const char* unit = row.is_difference ? "" : " %";
    const bool tested = row.reason.empty();
    print("{:<11}{:<20}{:>11.5g}{:>11.5g}{:>10}  {:<20}{:>9}  {}{}\n", to_string(row.change),
          row.metric, row.base_mean, row.new_mean,
          tested ? fmt::format("{:+.2f}{}", row.effect * scale, unit) : "",
          tested ? fmt::format("{:+.2f} to {:+.2f}{}", row.effect_low * scale,
                               row.effect_high * scale, unit)
                 : "",
          tested ? fmt::format("{:.2g}", std::min(row.p_worse, row.p_better)) : "",
          row.configuration.name(), row.reason.empty() ? "" : "  (" + row.reason + ")");
  }
  if (!all && same > 0) print("same       {} comparisons (--all shows them)\n", same);
  print("\n{} regression{} in {} comparisons; {}\n", report.regressions,
        report.regressions == 1 ? "" : "s", report.comparisons.size(), report.method);
  if (report.only_base.size() + report.only_new > 0) {
    print("not compared: {} configurations only in the base, {} only in the new run\n",
          report.only_base.size(), report.only_new);
  }
}

int compare(const CompareFlags& flags) {
  auto base = read(flags.base);
  if (!base) return tell(base.error());
  auto fresh = read(flags.fresh);
  if (!fresh) return tell(fresh.error());
  results::CompareOptions options = flags.options;
  options.better = better_named(flags.better);
  auto report = results::compare(*base, *fresh, options);
  if (!report) {
    return tell({report.error().code,
                 fmt::format("{} and {}: {}", flags.base, flags.fresh, report.error().message)});
  }
  if (!flags.junit.empty()) {
    const std::string text = results::junit_text(*report, flags.base + " against " + flags.fresh);
    if (auto written = files::write_text(flags.junit, text); !written) return tell(written.error());
  }
  if (flags.json) {
    print_json(*report);
  } else {
    print_table(*report, flags.all);
  }
  if (report->regressions > 0) return 1;
  const std::string too_little = report->too_little(flags.allow_missing);
  if (too_little.empty()) return 0;
  say(fmt::format("{} and {}: {}", flags.base, flags.fresh, too_little));
  return 3;
}

}  // namespace

void add_compare(Program& program) {
  auto flags = std::make_shared<CompareFlags>();
  Command command = program.command(
      "compare", "Did anything get worse from one run to another? Exits 1 if so",
      "  greynic compare base.db new.db\n"
      "  greynic compare base.db new.db --junit regressions.xml --metric latency_us_p99\n"
      "  greynic compare base.db new.db --metric my_own_cost --better less\n"
      "  greynic compare base.db new.db --tolerance 0.05 --all");
  command.option("base", flags->base, "Run file to compare with").required();
  command.option("new", flags->fresh, "Run file to judge").required();
  command.option("--junit", flags->junit, "JUnit XML file to write").writes();
  command.option(
      "--metric", flags->options.metrics,
      "Only this metric; may come again. Without it, all whose better direction is known");
  command
      .option("--better", flags->better,
              "Which direction is better, for metrics that greynic does not know")
      .choices({"more", "less"});
  command.flag(
      "--allow-missing", flags->allow_missing,
      "Accept a new run that lacks configurations or metrics of the base (else exit code 3)");
  command.option("--alpha", flags->options.alpha, "Chance of any false regression in all")
      .range(1e-6, 0.5);
  command.option("--tolerance", flags->options.tolerance, "Share of the base that does not matter")
      .range(0.0, 0.9);
  command.flag("--all", flags->all, "Show comparisons without a change too");
  command.flag("--json", flags->json, "JSON on stdout");
  command.run([flags] { return compare(*flags); });
}

}  // namespace greynic::cli
