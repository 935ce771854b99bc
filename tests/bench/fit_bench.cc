// Cost of fitting, of uncertainty and of prediction, beside scipy's curve_fit on the same problems:
// both fit the pipeline law (tests/model/plain_law.h; tests/bench/fit_scipy.py has it a third time)
// to planted devices, in turns, so that a busy machine slows both. Times are CPU time.
//
//   fit_bench [problems] [path of fit_scipy.py]      default 200; without python3-scipy our half
//   alone

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "../model/plain_law.h"
#include "greynic/model/grid.h"
#include "greynic/model/model.h"

namespace {

using namespace greynic;
using namespace greynic::model;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<Observation> problem(std::uint64_t seed, int observations) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  PlainLaw law;
  for (double* value : {&law.line, &law.post, &law.unit, &law.window, &law.encap, &law.decap,
                        &law.base, &law.fetch, &law.byte}) {
    *value *= std::exp(0.15 * normal(random));
  }
  law.pcie = 1.3 * law.line;
  // Half of the observations measure bandwidth, half latency: `observations` values in all.
  auto all = plant(law, observations, 0.02, random);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].measures.erase(std::string(i % 2 == 0 ? measure::kLatencyP50 : measure::kBandwidth));
  }
  return all;
}

void write_problem(const std::vector<Observation>& observations, const std::string& path) {
  std::ofstream file(path);
  for (const Observation& o : observations) {
    const bool bandwidth = o.value(measure::kBandwidth).has_value();
    file << fmt::format("{} {} {} {} {} {} {} {}\n", bandwidth ? 0 : 1,
                        o.asked.number("client_encap_masks"), o.asked.number("server_decap_masks"),
                        o.asked.number("server_encap_masks"), o.asked.number("client_decap_masks"),
                        o.asked.number("message_bytes"), o.asked.number("qp_count"),
                        *o.value(bandwidth ? measure::kBandwidth : measure::kLatencyP50));
  }
}

/// CPU seconds of scipy for one problem; negative when it cannot run or does not converge.
double scipy_seconds(const std::string& script, const std::string& path) {
  FILE* pipe = popen(fmt::format("/usr/bin/python3 {} {} 2>/dev/null", script, path).c_str(), "r");
  if (pipe == nullptr) return -1.0;
  double seconds = -1.0;
  if (std::fscanf(pipe, "%lf", &seconds) != 1) seconds = -1.0;
  pclose(pipe);
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const int problems = argc > 1 ? std::atoi(argv[1]) : 200;
  const std::string script = GREYNIC_SOURCE_DIR "/tests/bench/fit_scipy.py";
  FitOptions options;
  options.form = Form::kPipeline;
  options.cross_validate = false;
  options.starts = 1;
  options.intervals = Intervals::kCovariance;

  double ours = 0.0;
  double theirs = 0.0;
  int fitted = 0;
  int failed = 0;
  int scipy_fits = 0;
  std::unique_ptr<Model> last;
  const auto path = (std::filesystem::temp_directory_path() / "greynic_fit_problem.txt").string();
  for (int p = 0; p < problems; ++p) {
    const auto observations = problem(static_cast<std::uint64_t>(p) + 1, 100);
    const double begin = cpu_seconds();
    auto report = fit(observations, options);
    ours += cpu_seconds() - begin;
    ++fitted;
    if (!report) {
      ++failed;
    } else {
      last = std::move(report->model);
    }
    if (p % 4 != 0) continue;
    write_problem(observations, path);
    const double seconds = scipy_seconds(script, path);
    if (seconds < 0.0) continue;
    theirs += seconds;
    ++scipy_fits;
  }
  std::filesystem::remove(path);
  const double each = ours / fitted;
  fmt::print(
      "fit/observations=100          {:8.2f} ms each over {} ({} failed); 10,000: {:.1f} CPU s, "
      "{:.1f} s on 2 cores\n",
      1e3 * each, fitted, failed, 1e4 * each, 5e3 * each);
  if (scipy_fits > 0) {
    fmt::print("fit/scipy.curve_fit           {:8.2f} ms each over {}; ratio {:.1f}\n",
               1e3 * theirs / scipy_fits, scipy_fits, theirs / scipy_fits / each);
  } else {
    fmt::print("fit/scipy.curve_fit           did not run; apt-get install python3-scipy\n");
  }

  options.intervals = Intervals::kBootstrap;
  options.bootstrap_samples = 1000;
  const auto observations = problem(77, 100);
  double begin = cpu_seconds();
  const auto sampled = fit(observations, options);
  fmt::print("fit+bootstrap/samples=1000    {:8.2f} s{}\n", cpu_seconds() - begin,
             sampled ? "" : " " + sampled.error().message);
  options.intervals = Intervals::kProfile;
  begin = cpu_seconds();
  const auto profiled = fit(observations, options);
  fmt::print("fit+profile                   {:8.2f} s{}\n", cpu_seconds() - begin,
             profiled ? "" : " " + profiled.error().message);

  const auto axes = parse_grid(
      "client_encap_masks=0:24:1,server_decap_masks=0:24:1,server_encap_masks=0:19:1,"
      "client_decap_masks=0:19:1,operation=SEND|WRITE,message_bytes=64|65536");
  if (!axes || !last) return 1;
  const auto wall = std::chrono::steady_clock::now();
  begin = cpu_seconds();
  const auto grid = predict_grid(*last, *axes, 2);
  if (!grid) return 1;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - wall;
  fmt::print("predict_grid/cells={}    {:8.2f} CPU s, {:.2f} s on the wall with 2 threads\n",
             grid->cells, cpu_seconds() - begin, took.count());
  return 0;
}
