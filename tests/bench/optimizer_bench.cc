/// What the optimizer makes of rule sets, and what that costs:
///
///     optimizer_bench [--growth G] [--traffic zipf:1.1] [--ranges] [--no-verify] [FILE...]
///
/// With --ranges for a device that compares ports with ranges. One line a set: matchers tried by a packet (mean, 99th percentile, most), jumps taken, growth of
/// the rules, CPU seconds of the search and of `verify`, peak memory of the process. At the end the
/// geometric mean of the means. Without files: the published ClassBench sets, where they are.

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"

namespace {

using namespace greynic;

double cpu_seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<std::string> published_sets() {
  const std::string folder = std::string(GREYNIC_SOURCE_DIR) + "/../shared/data/rules/classbench";
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Settings {
  optimizer::OptimizeOptions options;
  std::string traffic = "uniform";
  bool verify = true;
};

/// Prints a line; the mean number of matchers tried, or 0 where the set was no use.
double lay_out(const std::string& file, const Settings& settings) {
  const auto rules = rules::read_rules(file);
  if (!rules) return fmt::print("{}\n", rules.error().message), 0.0;
  const auto traffic = rules::traffic_for(settings.traffic, *rules, 1);
  if (!traffic) return fmt::print("{}\n", traffic.error().message), 0.0;
  auto start = std::clock();
  const auto made = optimizer::optimize(*rules, *traffic, settings.options);
  const double search_seconds = cpu_seconds_since(start);
  if (!made) return fmt::print("{}: {}\n", file, made.error().message), 0.0;
  std::string verified = "-";
  double verify_seconds = 0.0;
  if (settings.verify) {
    start = std::clock();
    const auto verdict = verify::verify(*rules, made->layout);
    verify_seconds = cpu_seconds_since(start);
    verified = !verdict ? verdict.error().message : verdict->equivalent ? "yes" : "NO";
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const std::string name = std::filesystem::path(file).filename().string();
  fmt::print(
      "{:<22} {:>7} {:>8.2f} {:>7.2f} {:>5} {:>6} {:>6.2f} {:>6.2f} {:>8.2f} {:>7.2f} "
      "{:>6} {}\n",
      name.substr(0, name.find('.')), rules->rules.size(), made->before.matchers_tried,
      made->after.matchers_tried, made->after.matchers_tried_p99, made->after.most_matchers_tried,
      made->after.jumps,
      static_cast<double>(made->after.rules) / static_cast<double>(rules->rules.size()),
      search_seconds, verify_seconds, used.ru_maxrss / 1024, verified);
  std::fflush(stdout);
  return made->after.matchers_tried;
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--growth" && i + 1 < count) {
      settings.options.max_growth = std::stod(arguments[++i]);
    } else if (argument == "--traffic" && i + 1 < count) {
      settings.traffic = arguments[++i];
    } else if (argument == "--single-table") {
      settings.options.single_table = true;
    } else if (argument == "--ranges") {
      settings.options.limits.most_ranges = 2;
    } else if (argument == "--no-verify") {
      settings.verify = false;
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) files = published_sets();
  fmt::print("{:<22} {:>7} {:>8} {:>7} {:>5} {:>6} {:>6} {:>6} {:>8} {:>7} {:>6} {}\n", "set",
             "rules", "before", "mean", "p99", "most", "jumps", "growth", "search_s", "verify_s",
             "MiB", "equal");
  double log_sum = 0.0;
  int measured = 0;
  for (const std::string& file : files) {
    const double mean = lay_out(file, settings);
    if (!(mean > 0.0)) continue;
    log_sum += std::log(mean);
    ++measured;
  }
  if (measured > 0)
    fmt::print("geometric mean of {} sets: {:.2f}\n", measured, std::exp(log_sum / measured));
  return 0;
}
