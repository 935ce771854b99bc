#pragma once

/// The closed loop, step by step: plan, run, explain, fit, optimize, verify, apply, measure again,
/// report. Each step is a room's own function; this file only hands results on.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "greynic/campaign/job.h"
#include "greynic/causal/explain.h"
#include "greynic/loop/by_model.h"
#include "greynic/loop/gain.h"
#include "greynic/loop/talk.h"
#include "greynic/model/model.h"
#include "greynic/optimizer/growth.h"
#include "greynic/optimizer/mask_curve.h"
#include "greynic/optimizer/optimize.h"

namespace greynic::loop {

struct TuneOptions {
  campaign::Job job;         ///< its `out` is the run file inside `folder`
  std::string folder;        ///< where run, model, layout and report go
  std::string rules;         ///< rule file; empty: stop after the fit
  std::string rules_format;  ///< empty: told from the text
  std::string traffic = "zipf:1.1";
  std::string layout;  ///< file with a layout of `rules` to measure; empty: one is made
  /// Times the rules of the input that the layout may have; empty: as the curve's knee says.
  std::optional<double> growth = optimizer::OptimizeOptions{}.max_growth;
  bool one_layout = false;  ///< for all models of a fleet; else each has its own
  std::string model_form = "auto";
  int pairs = 5;      ///< of the gain measurement
  bool keep = false;  ///< leave the new layout on the device
  causal::ExplainOptions explain;
  Talk talk;  ///< hears each step as it begins, and how far it is
};

struct TuneOutcome {
  campaign::RunSummary run;
  causal::Explanation explanation;
  std::optional<model::FitReport> fit;
  std::string no_fit;           ///< why there is no law; empty when there is one
  Hop hop = Hop::kServerDecap;  ///< where the layout is placed
  std::optional<optimizer::OptimizedLayout> layout;  ///< by model: that of the first models
  std::vector<LayoutByModel> by_model;  ///< where models of a fleet have layouts of their own
  /// Matchers tried against rules, when the growth was to be found; without its layout, which is
  /// above.
  std::optional<optimizer::GrowthCurve> curve;
  std::optional<optimizer::MaskCurve> mask_curve;  ///< with the curve
  /// That layout as the device is given it, verified too; with `layout`.
  std::optional<target::FittedLayout> fitted;
  bool verified = false;  ///< by the independent check
  std::optional<Gain> gain;
  std::map<std::string, Forecast> forecasts;  ///< by measure, with `gain` where there is a law
  std::string no_gain;                        ///< why nothing was measured again
  std::string report;                         ///< path; empty when this build draws none
};

/// Runs the loop. Everything kept goes to `folder` as soon as it is known, so a loop that was
/// stopped goes on with the same call. Errors are those of the steps, with the step named.
[[nodiscard]] Result<TuneOutcome> tune(const TuneOptions& options);

}  // namespace greynic::loop
