#pragma once

/// Reads models of other tools, and our own, to CoverModel. What a reader does not take it names,
/// with file, line and column; it never guesses.

#include <optional>
#include <string>
#include <string_view>

#include "greynic/language/cover_model.h"

namespace greynic::language {

enum class ModelFormat : std::uint8_t { kPict, kCasa, kCnf, kJson };

[[nodiscard]] std::optional<ModelFormat> model_format_named(std::string_view name);
[[nodiscard]] std::string_view to_string(ModelFormat format);

/// By the file's name, else by its first words.
[[nodiscard]] ModelFormat guess_format(std::string_view path, std::string_view text);

/// PICT's model language: parameters with weights, aliases, negative values and references;
/// sub-models; IF/THEN/ELSE, invariants, LIKE, IN, NOT, relations between parameters, IsNegative,
/// IsPositive. Compared without case, as PICT does. Not taken: result parameters ($), orders of
/// single parameters.
[[nodiscard]] Result<CoverModel> parse_pict(std::string_view text, const std::string& source);

/// CASA's .citmodel (strength, number of options, levels of each) and its constraints file (empty
/// text: none). Options are named p1, p2, ...; levels are CASA's symbols, counted through all
/// options.
[[nodiscard]] Result<CoverModel> parse_casa(std::string_view model, const std::string& model_source,
                                            std::string_view constraints,
                                            const std::string& constraints_source);

/// DIMACS CNF; "c 12 NAME" lines name variables. Levels are 0 and 1.
[[nodiscard]] Result<CoverModel> parse_cnf(std::string_view text, const std::string& source);

/// docs/formats/cover_model.md
[[nodiscard]] Result<CoverModel> parse_json_model(std::string_view text, const std::string& source);

struct ModelFile {
  std::string path;
  std::optional<ModelFormat> format;       ///< empty: guessed
  std::optional<std::string> constraints;  ///< CASA: empty takes the file beside the model, if any
};

[[nodiscard]] Result<CoverModel> read_model(const ModelFile& file);

}  // namespace greynic::language
