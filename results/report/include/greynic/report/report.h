#pragma once

/// A run as one HTML file that needs nothing else: no network, no further file. It shows the walls
/// and their causes, the effect of every factor, the fitted law against the data, the rule layout
/// before and after, and what it takes to repeat it all. Every number in a picture also stands in a
/// table, so the page reads without JavaScript and in print. docs/report.md explains each part.
///
/// Documents kept with the run (explanation, plan, model, layout, gain) are shown as they are;
/// kinds that are not known are shown as JSON. The pictures are drawn by Apache ECharts, which is
/// part of the file.

#include <functional>
#include <optional>
#include <string>

#include "greynic/core/configuration.h"
#include "greynic/core/result.h"
#include "greynic/results/store.h"

namespace greynic::report {

/// A prediction with the interval that holds 95 % of new observations.
struct Predicted {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
  bool extrapolated = false;
};

/// Asks the fitted model, which lives in another room; empty when it cannot say.
using Predictor =
    std::function<std::optional<Predicted>(const Configuration&, const std::string& measure)>;

struct ReportOptions {
  std::string run_path;    ///< as given by the user, for the command that repeats the run
  std::string title;       ///< empty: the campaign's name
  std::string model_text;  ///< JSON of the model shown; empty: the one kept with the run, if any
  Predictor predictor;     ///< of that model; may be empty
};

/// The HTML text. kBadInput when a kept document is no JSON, or the run holds no observation.
[[nodiscard]] Result<std::string> report_html(const results::RunStore& store,
                                              const ReportOptions& options);

}  // namespace greynic::report
