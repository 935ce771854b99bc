#pragma once

/// Constraints to clauses. Small constraints become plain clauses over the model's own parameters;
/// entangled ones (sums, products, long alternations) get helper parameters, one for each node of
/// their decision diagram or for each part of a disjunction.

#include <string_view>

#include "greynic/testgen/cover_model.h"

namespace greynic::testgen {

class ConstraintCompiler {
 public:
  ConstraintCompiler(const CoverModel& model, Space& space, const CompileOptions& options)
      : model_(model), space_(space), options_(options) {}

  /// Adds clauses that hold exactly where the normal form does. kTooBig names `text`.
  [[nodiscard]] Result<void> add(const Expr& normal, std::string_view where, std::string_view text);

 private:
  [[nodiscard]] bool add_under(const Clause& unless, const Expr& normal, std::size_t most_nodes);
  [[nodiscard]] bool add_diagram(const Clause& unless, const Expr& normal, std::size_t most_nodes);
  [[nodiscard]] bool add_parts(const Clause& unless, const Expr& normal, std::size_t most_nodes);
  std::uint32_t new_helper();
  void add_not_in(Clause& clause, std::uint32_t parameter, const std::vector<bool>& set) const;

  const CoverModel& model_;
  Space& space_;
  const CompileOptions& options_;
};

}  // namespace greynic::testgen
