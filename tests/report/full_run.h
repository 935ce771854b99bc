#pragma once

/// A run with every kind of content that a report can show, and its page.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "../results/scratch.h"
#include "greynic/report/report.h"
#include "needs_pictures.h"

namespace greynic::report {

using greynic::testing::Scratch;

inline constexpr const char* kCampaign = R"({
  "version": 1, "name": "shown",
  "factors": { "qp_count": { "type": "numeric", "levels": [1, 8, 64] },
               "transport": { "type": "categorical", "levels": ["RC", "UC"] } },
  "design": "full", "baseline": { "qp_count": 1, "transport": "RC" },
  "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
  "measure": { "repeats": 2, "seconds": 1 } })";

inline constexpr const char* kExplanation = R"({
  "version": 1, "campaign": "shown", "metric": "bandwidth_gbps", "bound": "a fifth less",
  "expected": 90, "confidence": 0.99, "configurations": 6, "tests_read": 12, "tests_ordered": 9,
  "walls": [{ "configuration": { "qp_count": 64, "transport": "RC" }, "cause": 0 },
            { "configuration": { "qp_count": 64, "transport": "UC" }, "cause": null }],
  "causes": [{ "text": "qp_count >= 64", "by_experiment": true, "confidence": 0.995,
    "severity": { "value": 0.5, "low": 0.45, "high": 0.55 }, "walls_explained": 1,
    "evidence": [{ "role": "all terms", "wall": true, "decided": true, "tests": 5, "p_value": 1e-5,
                   "ratio": { "value": 0.5, "low": 0.45, "high": 0.55 } }] }],
  "critical_path": { "symptom": "S6", "symptom_text": "masks are queried", "stages": [
    { "stage": "host", "settings": ["thread_count"], "healed": null, "alone": null, "up_to_here": null,
      "holds": false, "counters": [] },
    { "stage": "caches", "settings": ["qp_count"], "healed": { "value": 1.01, "low": 0.98, "high": 1.04 },
      "alone": null, "up_to_here": { "value": 0.99, "low": 0.97, "high": 1.02 }, "holds": false, "counters": [] },
    { "stage": "server decap", "settings": [], "healed": { "value": 3.125, "low": 3.05, "high": 3.2 },
      "alone": null, "up_to_here": { "value": 0.3185, "low": 0.31, "high": 0.33 }, "holds": true,
      "counters": [{ "name": "server.rx_steering_pipe_hops", "baseline": 1.9, "wall": 571.9 }] }] },
  "sensitivity": { "noise": 0.031, "paths": 8, "rows": 32, "settings": [
    { "factor": "server_decap_masks", "healed": null, "weaker": null, "mean": null, "mean_of_size": null,
      "stronger": { "level": 80, "ratio": { "value": 0.61, "low": 0.6, "high": 0.62 } }, "spread": 0.08,
      "first": { "value": 0.967, "low": 0.91, "high": 1.0 }, "total": { "value": 0.981, "low": 0.93, "high": 1.02 } }] },
  "notes": ["a note"] })";

inline constexpr const char* kModel = R"({
  "version": 1, "law": "pipeline", "observations": 12, "findings": ["nothing odd"],
  "parameters": [{ "name": "line_gbps", "value": 97.5, "low": 97, "high": 98, "unit": "Gbit/s" }] })";

inline constexpr const char* kLayouts = R"({
  "before": { "version": 1, "tables": [{ "id": 0, "matchers": [
    { "mask": { "ipv4_src": "0xffffff00" }, "rules": [{ "weight": 0.1 }] },
    { "mask": { "ipv4_dst": "0xffffffff" }, "rules": [{ "weight": 0.9 }, { "weight": 0 }] }] }] },
  "after": { "version": 1, "tables": [{ "id": 0, "matchers": [
    { "mask": {}, "rules": [{ "weight": 1 }] }] }] } })";

inline constexpr const char* kOptimization = R"({
  "version": 1, "rules": "host.flows", "traffic": "zipf:1.1", "rules_dropped": 0,
  "before": { "tables": 1, "matchers": 114, "rules": 277, "matchers_tried_mean": 99.7041,
              "matchers_tried_most": 114, "shares_by_tried": [[90, 0.5], [114, 0.5]],
              "predicted": { "bandwidth_gbps": { "value": 20.02, "low": 19.15, "high": 20.93 },
                             "extrapolated": true } },
  "after": { "tables": 7, "matchers": 108, "rules": 369, "matchers_tried_mean": 20.0312,
             "matchers_tried_most": 41, "shares_by_tried": [[2, 0.25], [41, 0.75]],
             "predicted": { "bandwidth_gbps": { "value": 97.23, "low": 96.27, "high": 98.21 } } },
  "mask_curve": { "masks": 40, "taken": 1, "points": [
    { "growth": 1, "entries": 277, "masks": 40, "masks_at_least": 38 },
    { "growth": 1.5, "entries": 410, "masks": 12, "masks_at_least": 9 }] },
  "curve": [{ "growth": 1, "rules": 277, "matchers_tried_mean": 60.5, "matchers_tried_p99": 90 },
            { "growth": 1.5, "rules": 369, "matchers_tried_mean": 20.0312, "matchers_tried_p99": 41 }],
  "proof": { "tables": 7, "pairs": 24513, "verified": true } })";

inline constexpr const char* kGain =
    R"({ "metric": "bandwidth_gbps", "before": 45, "after": 80,
         "predicted": { "value": 82, "low": 78, "high": 86 } })";

inline results::RunHeader header_of(const std::string& name) {
  results::RunHeader header;
  header.campaign_name = name;
  header.campaign_text = kCampaign;
  header.target = "exec:./m.sh --it's";
  header.seed = 7;
  header.command = "greynic run 'a <b>.json' --target 'exec:./m.sh --it'\\''s' --seed 7";
  return header;
}

/// A run with every kind of content that a report can show.
inline results::RunStore full_run(const std::string& path, const std::string& name = "shown") {
  auto store = results::RunStore::open_to_append(path, header_of(name));
  EXPECT_TRUE(store) << store.error().message;
  for (const double qps : {1.0, 8.0, 64.0}) {
    for (const char* transport : {"RC", "UC"}) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        Observation observation;
        observation.asked = {{"qp_count", qps}, {"transport", std::string(transport)}};
        observation.repeat = repeat;
        observation.outcome = Outcome::kMeasured;
        observation.measures["bandwidth_gbps"] = {90.125 - qps + repeat, std::nullopt};
        observation.measures["latency_us_p50"] = {3.0 + qps / 10, std::nullopt};
        for (std::uint64_t i = 0; i < 2000; ++i) observation.latency.record(3000 + i * (1 + i % 7));
        EXPECT_TRUE(store->append(observation));
      }
    }
  }
  Observation refused;
  refused.asked = {{"qp_count", 128.0}, {"transport", std::string("</script><script>alert(1)")}};
  refused.outcome = Outcome::kRefused;
  refused.reason = "ENOMEM <b>";
  EXPECT_TRUE(store->append(refused));
  for (const auto& [kind, text] : {std::pair{"explanation", kExplanation},
                                   {"model", kModel},
                                   {"layout", kLayouts},
                                   {"optimization", kOptimization},
                                   {"gain", kGain},
                                   {"odd", "{\"a\":1}"}}) {
    EXPECT_TRUE(store->keep(kind, text));
  }
  return std::move(*store);
}

inline ReportOptions options_of(const std::string& path) {
  ReportOptions options;
  options.run_path = path;
  options.predictor = [](const Configuration& configuration,
                         const std::string& measure) -> std::optional<Predicted> {
    if (measure != "bandwidth_gbps") return std::nullopt;
    const double value = 90 - configuration.number("qp_count");
    return Predicted{value, value - 2, value + 2, configuration.number("qp_count") > 32};
  };
  return options;
}

inline std::string full_report(const Scratch& scratch, const std::string& name = "shown") {
  const std::string path = scratch / "run.db";
  auto html = report_html(full_run(path, name), options_of(path));
  EXPECT_TRUE(html) << html.error().message;
  return html.value_or("");
}

/// The page up to the drawing library, whose text holds words of HTML that it only ever draws.
inline std::string own_part(const std::string& page) {
  return page.substr(0, page.find("<script>"));
}

}  // namespace greynic::report
