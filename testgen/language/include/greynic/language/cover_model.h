#pragma once

/// A model of what may be combined: named parameters with levels, constraints over them, and what
/// must be covered beyond the overall strength. Campaigns, PICT, CASA, CNF and our own JSON are all
/// read to this. The generator compiles it to clauses (testgen/model_cover.h); the checker judges
/// arrays by it as it stands.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/language/expression.h"

namespace greynic::language {

/// "parameter has level" (positive) or "has not" (negative).
struct Literal {
  std::uint32_t parameter = 0;
  std::uint16_t level = 0;
  bool positive = true;
  bool operator==(const Literal&) const = default;
};

/// At least one literal holds.
using Clause = std::vector<Literal>;

/// A tuple: (parameter, level) pairs by ascending parameter.
using Tuple = std::vector<std::pair<std::uint32_t, std::uint16_t>>;

/// Tuples of `strength` among these parameters must be covered, whatever the overall strength.
struct SubModel {
  std::vector<std::uint32_t> parameters;
  int strength = 2;
};

/// Of one parameter; readers refuse more. A level is 16 bits wide inside.
inline constexpr std::size_t kMostLevels = 10'000;

struct ModelParameter {
  std::string name;
  std::vector<std::string> levels;  ///< as they are written out
  std::vector<double> numbers;      ///< numeric parameters: the value of each level; else empty
  std::vector<std::vector<std::string>> aliases;  ///< further names of each level; may be empty
  std::vector<bool> negative;   ///< out-of-range levels, at most one in a row; may be empty
  std::vector<double> weights;  ///< may be empty
  std::vector<double> costs;    ///< may be empty
  std::optional<Expr> only_if;  ///< the parameter exists where this is true
  bool covered = true;          ///< false: constrained, but its tuples need no covering
};

/// A constraint in words and as an expression. `where` is "line 12" or "/constraints/3".
struct ModelConstraint {
  Expr expression;
  std::string text;
  std::string where;
};

struct CoverModel;

/// What a row breaks, and whose levels in it are enough for that.
struct Breach {
  std::string what;                    ///< empty: nothing is broken
  std::vector<std::uint32_t> because;  ///< parameters; each once
};

/// A rule of validity that is no expression, such as "every packet arrives". The generator asks
/// more of it: see testgen/compile/clause_extension.h.
class ModelExtension {
 public:
  virtual ~ModelExtension() = default;
  /// What a row (levels of the model's parameters, -1 absent) breaks.
  [[nodiscard]] virtual Breach broken_by(const CoverModel& model,
                                         const std::vector<int>& row) const = 0;
};

struct CoverModel {
  std::string source;  ///< file, for messages
  std::vector<ModelParameter> parameters;
  std::vector<ModelConstraint> constraints;
  std::vector<Clause> clauses;            ///< constraints that came as clauses already
  std::vector<std::string> clause_where;  ///< one for each clause
  std::vector<SubModel> groups;
  std::vector<std::vector<int>> seeds;    ///< a level for each parameter; -1: any
  std::vector<std::vector<int>> already;  ///< whole rows, -1 absent: what they cover is covered
  std::shared_ptr<const ModelExtension> extension;  ///< may be null
  std::optional<int> strength;                      ///< stated by the model itself

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  [[nodiscard]] bool has_negative_levels() const;
};

/// Value of a level; only for numeric parameters.
[[nodiscard]] double number_of(const CoverModel& model, std::uint32_t parameter, int level);

/// How many negative levels a row has.
[[nodiscard]] std::size_t negative_count(const CoverModel& model, const std::vector<int>& row);

/// Whether a row (one level for each parameter of the model, -1 absent) breaks nothing. When it
/// does and `why` is not null, it is told the first thing broken. Direct evaluation, no solver.
[[nodiscard]] bool is_valid(const CoverModel& model, const std::vector<int>& row,
                            std::string* why = nullptr);

}  // namespace greynic::language
