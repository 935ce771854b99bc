#pragma once

/// Constraints to clauses. Small constraints become plain clauses over the model's own parameters;
/// entangled ones (sums, products, long alternations) get helper parameters, one for each node of
/// their decision diagram or for each part of a disjunction.

#include <optional>
#include <string_view>

#include "greynic/language/cover_model.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {

class ConstraintCompiler {
 public:
  ConstraintCompiler(const language::CoverModel& model, Space& space, const CompileOptions& options)
      : model_(model), space_(space), options_(options) {}

  /// Adds clauses that hold exactly where the normal form does. kTooBig names `text`.
  [[nodiscard]] Result<void> add(const language::Expr& normal, std::string_view where,
                                 std::string_view text);

  /// A literal that is true exactly where the normal form `truth` is; `falsity` is the normal form
  /// of its negation. Empty, and `constant` told, when it always or never is. kTooBig names `text`.
  [[nodiscard]] Result<std::optional<Literal>> literal_for(const language::Expr& truth,
                                                           const language::Expr& falsity,
                                                           bool& constant, std::string_view where,
                                                           std::string_view text);

 private:
  [[nodiscard]] tl::unexpected<Error> too_big(std::string_view where, std::string_view text) const;
  [[nodiscard]] bool add_whole(const Clause& unless, const language::Expr& normal);
  [[nodiscard]] bool add_under(const Clause& unless, const language::Expr& normal,
                               std::size_t most_nodes);
  [[nodiscard]] bool add_diagram(const Clause& unless, const language::Expr& normal,
                                 std::size_t most_nodes);
  [[nodiscard]] bool add_parts(const Clause& unless, const language::Expr& normal,
                               std::size_t most_nodes);
  std::uint32_t new_helper();
  void add_not_in(Clause& clause, std::uint32_t parameter, const std::vector<bool>& set) const;

  const language::CoverModel& model_;
  Space& space_;
  const CompileOptions& options_;
};

}  // namespace greynic::testgen
