#include "greynic/twin/validation.h"

#include <algorithm>
#include <functional>

#include "validation/experiments.h"

namespace greynic::twin {

BandwidthResult Bench::rate(const HostLoad& load, std::uint64_t most_packets) {
  Engine engine(model_.parameters, load, Effects{}, statistics::split_mix(seed_));
  RunLimits limits;
  limits.most_packets = most_packets;
  return engine.run_bandwidth(limits);
}

double Bench::half_rtt_us(const HostLoad& load, std::uint64_t rounds) {
  Engine engine(model_.parameters, load, Effects{}, statistics::split_mix(~seed_));
  const LatencyResult result = engine.run_latency(RunLimits{}, rounds);
  return result.histogram.quantile_ns(0.5) * 1e-3;
}

bool ValidationReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed(); });
}

Result<ValidationReport> validate(const std::string& name, std::uint64_t seed,
                                  const std::function<void(double)>& progress) {
  const auto usual = load_model(name, "");
  if (!usual) return pass_on(usual);
  ValidationReport report;
  report.id = usual->id;
  report.model = usual->name;
  report.free_parameter_count = usual->free_parameter_count();

  struct Step {
    RnicModel model;
    std::function<void(Bench&)> run;
  };
  std::vector<Step> steps;
  const auto add = [&](const RnicModel& model, auto run) { steps.push_back({model, run}); };
  const auto has = [&](const char* profile) {
    return std::find(usual->profiles.begin(), usual->profiles.end(), profile) !=
           usual->profiles.end();
  };
  if (has("logs")) {
    const auto logs = load_model(name, "logs");
    if (!logs) return pass_on(logs);
    add(*logs, latency_under_groups);
    add(*logs, bandwidth_of_large_messages);
    add(*logs, rate_of_small_messages);
    add(*logs, one_qp_against_four);
  }
  if (usual->surface && has("surface")) {
    const auto surface = load_model(name, "surface");
    if (!surface) return pass_on(surface);
    // Parameters of both profiles count, each once.
    for (const ParameterFact& fact : surface->facts) {
      const bool counted =
          std::any_of(usual->facts.begin(), usual->facts.end(),
                      [&](const ParameterFact& f) { return f.name == fact.name && f.free; });
      if (fact.free && !counted) ++report.free_parameter_count;
    }
    add(*surface, surfaces);
  }
  if (usual->id == "cx6") {
    for (const Operation operation : {Operation::kRead, Operation::kWrite}) {
      add(*usual, [operation](Bench& bench) { doorbell_sharing(bench, operation); });
      add(*usual, [operation](Bench& bench) { outstanding_requests(bench, operation); });
    }
  }
  if (usual->id == "cx3") add(*usual, qp_count_cx3);
  if (usual->id == "cx5") {
    add(*usual, qp_count_cx5);
    add(*usual, steering_hops);
  }
  if (usual->id == "cx7") add(*usual, qp_count_cx7);
  add(*usual, pcie_bandwidth);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Bench bench(steps[i].model, name, seed, report);
    steps[i].run(bench);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(steps.size()));
  }
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const CheckRow& a, const CheckRow& b) { return a.item < b.item; });
  return report;
}

}  // namespace greynic::twin
