/// Covers the model files it is given, one after the other, and prints rows and CPU seconds of
/// each and in all, beside what was foretold.
///
///   cover_models_bench [--strength T] [--seed N] [--threads N] [--cpu-seconds S] [--check]
///                      [--lower-bound] MODEL...
///
/// A deadline counts this process's CPU seconds divided by the threads, so what else runs on the
/// machine does not change what is compared. CASA constraints are looked for beside the model.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/check/array_check.h"
#include "greynic/language/model_reader.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Totals {
  std::size_t rows = 0;
  double seconds = 0.0;
  int failures = 0;
};

void run(const std::string& path, const CoverOptions& options, bool check, Totals& totals) {
  const auto model = language::read_model({path, std::nullopt, std::nullopt});
  if (!model) {
    fmt::print("{}: {}\n", path, model.error().message);
    ++totals.failures;
    return;
  }
  CoverEstimate foretold;
  CoverOptions telling = options;
  telling.announce = [&](const CoverEstimate& estimate) { foretold = estimate; };
  const double before = cpu_seconds();
  const auto covered = cover_model(*model, telling);
  const double seconds = cpu_seconds() - before;
  if (!covered) {
    fmt::print("{}: {}\n", path, covered.error().message);
    ++totals.failures;
    return;
  }
  totals.rows += covered->rows.size();
  totals.seconds += seconds;
  std::string verdict = covered->summary.full ? "full" : "NOT FULL";
  if (check) {
    const check::CheckReport report = check::check_array(*model, covered->rows, options.strength);
    verdict = report.good() ? "checked" : "WRONG";
    if (!report.good()) ++totals.failures;
  }
  fmt::print(
      "{:<28} rows {:>6}  at least {:>6}  foretold {:>6.0f}  cpu_s {:>9.4f}  foretold {:>9.4f}  "
      "{}\n",
      path.substr(path.rfind('/') + 1), covered->rows.size(), covered->summary.lower_bound,
      foretold.rows, seconds, foretold.steps * 1e-9, verdict);
  std::fflush(stdout);
}

int bench(const std::vector<std::string>& arguments) {
  CoverOptions options;
  bool check = false;
  std::vector<std::string> paths;
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const std::string& word = arguments[a];
    const auto number = [&] {
      return a + 1 < arguments.size() ? std::strtod(arguments[++a].c_str(), nullptr) : 0.0;
    };
    if (word == "--strength") {
      options.strength = static_cast<int>(number());
    } else if (word == "--seed") {
      options.seed = static_cast<std::uint64_t>(number());
    } else if (word == "--threads") {
      options.threads = static_cast<int>(number());
    } else if (word == "--cpu-seconds") {
      options.deadline_seconds = number();
    } else if (word == "--check") {
      check = true;
    } else if (word == "--lower-bound") {
      options.report_lower_bound = true;
    } else {
      paths.push_back(word);
    }
  }
  options.clock = [threads = options.threads] { return cpu_seconds() / threads; };
  Totals totals;
  for (const std::string& path : paths) run(path, options, check, totals);
  fmt::print("TOTAL {} models, rows {}, cpu_s {:.4f}, failures {}\n", paths.size(), totals.rows,
             totals.seconds, totals.failures);
  return totals.failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace greynic::testgen

int main(int argc, char** argv) { return greynic::testgen::bench({argv + 1, argv + argc}); }
