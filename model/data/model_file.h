#pragma once

/// The parts of a model file (docs/formats/model.md) that every law has, as JSON.

#include <nlohmann/json_fwd.hpp>

#include "data/domain.h"
#include "data/points.h"
#include "greynic/model/model.h"

namespace greynic::model {

[[nodiscard]] nlohmann::json to_json(const Domain& domain);
[[nodiscard]] Domain domain_from_json(const nlohmann::json& object);
/// What every file begins with: version, law, and what the model remembers of its fit.
[[nodiscard]] nlohmann::json file_head(const std::string& law, const FittedOn& fitted_on);
/// The same, read; kBadInput for a range whose ends stand the wrong way round.
[[nodiscard]] Result<void> read_file_head(const nlohmann::json& document, const std::string& source,
                                          FittedOn& fitted_on);

[[nodiscard]] nlohmann::json to_json(const std::map<std::string, Ratio>& tails);
[[nodiscard]] std::map<std::string, Ratio> tails_from_json(const nlohmann::json& object);

/// Levels that a question may leave open. kBadInput names the level that no device takes: found
/// later, it would look like a mistake of the question.
[[nodiscard]] Result<Configuration> assumed_levels_from_json(const nlohmann::json& object,
                                                             const std::string& source,
                                                             const std::string& path);
/// The same by output.
[[nodiscard]] nlohmann::json assumed_to_json(
    const std::array<Configuration, kOutputCount>& assumed);
[[nodiscard]] Result<std::array<Configuration, kOutputCount>> assumed_from_json(
    const nlohmann::json& object, const std::string& source);

/// Readers of the laws; the document has passed the schema.
[[nodiscard]] Result<std::unique_ptr<Model>> pipeline_from_json(const nlohmann::json& document,
                                                                const std::string& source);
[[nodiscard]] Result<std::unique_ptr<Model>> cost_from_json(const nlohmann::json& document,
                                                            const std::string& source);
[[nodiscard]] Result<std::unique_ptr<Model>> scalacn_from_json(const nlohmann::json& document,
                                                               const std::string& source);
[[nodiscard]] Result<std::unique_ptr<Model>> surrogate_from_json(const nlohmann::json& document,
                                                                 const std::string& source);

}  // namespace greynic::model
