#pragma once

/// A fitted model: predicts the measures of a configuration with 95 % prediction intervals, says
/// when it extrapolates and by how far, and never answers with a number that is not one. The laws
/// behind it (pipeline, scalacn, surrogate, cost) have one page each in docs/models/.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::model {

/// `low` and `high` bound 95 % of new observations of this configuration.
struct PredictedMeasure {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

struct Prediction {
  std::map<std::string, PredictedMeasure> measures;  ///< by measure name, e.g. "bandwidth_gbps"
  bool extrapolated = true;
  double distance = 0.0;  ///< how far outside the fitted domain, in domain widths; 0 inside
  std::vector<std::string> outside;  ///< factors that lie outside, for the message
  std::vector<std::string> notes;    ///< what else has to be said, e.g. that a line clamps a value
  std::string law;
};

/// (masks tried at a hop, share of the packets that try so many); the shares add up to 1.
using MaskShares = std::vector<std::pair<double, double>>;

/// Masks that, tried by each packet, let as many packets through in a second as uneven ones do, and a message as soon.
struct AlikeMasks {
  double for_rate = 0.0;
  double for_latency = 0.0;
};

class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual std::string law() const = 0;
  /// Factors that the law reads; all others do not matter to it.
  [[nodiscard]] virtual std::vector<std::string> inputs() const = 0;
  /// kBadInput when a factor has a value the law cannot take (negative masks, unknown operation).
  [[nodiscard]] virtual Result<Prediction> predict(const Configuration& configuration) const = 0;
  /// As many masks at `hop`, tried by each packet, as these are worth, whatever `configuration` says of it: their mean,
  /// unless the law knows what is kept in order behind them. Errors are those of predict().
  [[nodiscard]] virtual Result<AlikeMasks> masks_alike(const Configuration& configuration, Hop hop,
                                                       const MaskShares& shares) const;
  /// Where packets do not all try as many masks at `hop`: what even ones bring that are worth as much.
  [[nodiscard]] virtual Result<Prediction> predict_uneven(const Configuration& configuration,
                                                          Hop hop, const MaskShares& shares) const;
  /// The model file of docs/formats/model.md, as text.
  [[nodiscard]] virtual std::string to_json_text() const = 0;
};

/// Reads a model file, or one of the published rows: "published:cx4" cx5 cx6 cx7 bf3 e810.
/// kBadInput names file, path inside it and remedy.
[[nodiscard]] Result<std::unique_ptr<Model>> load(const std::string& path_or_name);
/// The same from the text of a file; `source` is what messages call it.
[[nodiscard]] Result<std::unique_ptr<Model>> parse(std::string_view text,
                                                   const std::string& source);

enum class Form { kPipeline, kScalacn, kSurrogate, kCost, kAuto };
/// "pipeline, scalacn, surrogate, cost or auto", for messages and help.
inline constexpr std::string_view kFormNames = "pipeline, scalacn, surrogate, cost or auto";
[[nodiscard]] std::optional<Form> form_named(std::string_view name);

/// How the 95 % intervals of the pipeline law's parameters are found. kProfile: by the covariance
/// where the curvature at the minimum speaks for the whole interval, by profile likelihood
/// elsewhere.
enum class Intervals { kCovariance, kProfile, kBootstrap };
[[nodiscard]] std::optional<Intervals> intervals_named(std::string_view name);

struct FitOptions {
  Form form = Form::kAuto;
  Intervals intervals = Intervals::kProfile;
  int bootstrap_samples = 1000;
  std::uint64_t seed = 1;  ///< of the starting points
  int starts = 8;          ///< initial points of the multi-start
  /// Leave settings out in turn: gives the errors of the report and the law's own error outside its
  /// domain. Ten times the work.
  bool cross_validate = true;
};

/// A fit and what has to be said about it.
struct FitReport {
  std::unique_ptr<Model> model;
  std::size_t observations_used = 0;
  std::map<std::string, double> r2;  ///< by measure
  std::map<std::string, double>
      cross_validated_error;          ///< leave-one-setting-out, mean relative error
  std::vector<std::string> findings;  ///< for people: residuals no law explains, trade-offs
  std::string text;                   ///< table of parameters with intervals, for people
};

/// Fits one model to the measured observations. kNotMeasured (no measure that the law is for),
/// kTooFewPoints (fewer distinct points than it needs), kNotConverged, kRankDeficient.
[[nodiscard]] Result<FitReport> fit(std::span<const Observation> observations,
                                    const FitOptions& options = {});

/// Fits one pipeline model to each run, each informed by the others (partial pooling): what the
/// runs have in common becomes prior knowledge of all, with the spread that they show. In the order
/// of `runs`. kBadInput below two runs; other errors as fit(), with the number of the run.
[[nodiscard]] Result<std::vector<FitReport>> fit_together(
    std::span<const std::vector<Observation>> runs, const FitOptions& options = {});

}  // namespace greynic::model
