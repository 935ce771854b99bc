#pragma once

/// A model of what may be combined: named parameters with levels, constraints over them, and what
/// must be covered beyond the overall strength. Campaigns, PICT, CASA, CNF and our own JSON are all
/// read to this; `compile` turns it into a Space of clauses for the engines, and back.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/testgen/expression.h"
#include "greynic/testgen/space.h"

namespace greynic::testgen {

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

/// A rule of validity that is no expression, such as "every packet arrives".
class ModelExtension {
 public:
  virtual ~ModelExtension() = default;
  /// Adds clauses, with helpers where needed, that hold exactly where nothing is broken.
  [[nodiscard]] virtual Result<void> compile(const CoverModel& model, Space& space) const = 0;
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
  std::vector<StrengthGroup> groups;
  std::vector<std::vector<int>> seeds;    ///< a level for each parameter; -1: any
  std::vector<std::vector<int>> already;  ///< whole rows, -1 absent: what they cover is covered
  std::shared_ptr<const ModelExtension> extension;  ///< may be null
  std::optional<int> strength;                      ///< stated by the model itself

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  [[nodiscard]] bool has_negative_levels() const;
};

/// Value of a level; only for numeric parameters.
[[nodiscard]] double number_of(const CoverModel& model, std::uint32_t parameter, int level);

/// Whether a row (one level for each parameter of the model, -1 absent) breaks nothing. When it
/// does and `why` is not null, it is told the first thing broken. Direct evaluation, no solver.
[[nodiscard]] bool is_valid(const CoverModel& model, const std::vector<int>& row,
                            std::string* why = nullptr);

struct CompileOptions {
  std::size_t most_nodes = 200'000;  ///< of one constraint's decision diagram; beyond: kTooBig
};

/// The model's parameters come first in the space and in the same order; helpers follow. A
/// parameter with a condition has one level more, its last, for "absent". Seeds are completed to
/// whole rows. Errors: kTooBig (a constraint too entangled: it names it), kInfeasible (a seed that
/// is not valid, or nothing is: it names the constraints).
[[nodiscard]] Result<Space> compile(const CoverModel& model, const CompileOptions& options = {});

/// The levels of the model's own parameters in a row of the space; -1: absent.
[[nodiscard]] std::vector<int> decode(const CoverModel& model, const Row& row);

/// An array for the model: rows of levels, -1 absent.
struct ModelCover {
  std::vector<std::vector<int>> rows;
  Cover summary;  ///< its rows are those of the space
};

/// Compiles and covers. Models with negative levels are covered in two passes: first without any of
/// them, so that no valid tuple hides behind a negative level, then every tuple with one.
[[nodiscard]] Result<ModelCover> cover_model(const CoverModel& model, const CoverOptions& options);

}  // namespace greynic::testgen
