#pragma once

/// The cost law: what one packet costs a switch in software, linear in the masks that it is checked
/// against. For measures such as packet_cost_ns, where no line and no bus bounds anything.
/// docs/models/cost.md has the derivation.
///
///     cost = base + byte x bytes + flow x log2(flows) + rule x log2(rules of a mask)
///            + miss(flows) x sum over hops of per_mask x masks
///     miss(F) = 1 / (1 + (half/F)^steepness) for each flow cache that is on, else 1

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/domain.h"
#include "greynic/model/model.h"

namespace greynic::model {

enum class CostTermKind { kBase, kPerMask, kPerByte, kPerFlow, kPerRule, kCacheHalf, kCacheSteep };

struct CostTerm {
  CostTermKind kind = CostTermKind::kBase;
  std::string factor;  ///< mask factor, or cache that is on; empty for the others
  [[nodiscard]] std::string name() const;
};

/// How files and tables show a kind of term.
struct CostTermInfo {
  std::string_view name;
  std::string_view unit;  ///< after that of the measure
  std::string_view meaning;
};
[[nodiscard]] CostTermInfo info_of(CostTermKind kind);
/// Unit of a term's value for a measure, e.g. "ns/mask".
[[nodiscard]] std::string unit_of(const std::string& measure, const CostTerm& term);

/// One measure: its values for the terms of the law, with what the fit knows of them.
struct CostCurve {
  std::vector<double> values;      ///< as the terms; unit of the measure, half in flows
  std::vector<double> covariance;  ///< of the values, row by row
  double scatter = 0.0;            ///< of the logarithm about the law
};

struct CostState : FittedOn {
  std::vector<CostTerm> terms;
  std::map<std::string, CostCurve> curves;  ///< by measure
  Configuration assumed;                    ///< most common levels, for what a question leaves open
};

class CostModel final : public Model {
 public:
  explicit CostModel(CostState state) : state_(std::move(state)) {}
  [[nodiscard]] std::string law() const override { return "cost"; }
  [[nodiscard]] std::vector<std::string> inputs() const override;
  [[nodiscard]] Result<Prediction> predict(const Configuration& configuration) const override;
  [[nodiscard]] std::string to_json_text() const override;
  [[nodiscard]] const CostState& state() const { return state_; }
  [[nodiscard]] CostState& state() { return state_; }

 private:
  CostState state_;
};

/// Measures that the law is for: those whose name says cost.
[[nodiscard]] std::vector<std::string> cost_measures(std::span<const Observation> observations);

/// kNotMeasured without a cost measure; kTooFewPoints below one value more than terms;
/// kNotConverged.
[[nodiscard]] Result<CostState> fit_cost(std::span<const Observation> observations);

/// Table of the values with units and 95 % intervals.
[[nodiscard]] std::string cost_table(const CostState& state);

/// Cost at one configuration and d cost / d value of each term.
[[nodiscard]] double cost_of(const CostState& state, const Configuration& configuration,
                             std::span<const double> values, std::span<double> gradient);

}  // namespace greynic::model
