#pragma once

/// A run in the formats of other tools. Columns, fields and labels carry their units in their
/// names. docs/formats/observation.md shows one observation in each.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "greynic/core/observation.h"
#include "greynic/results/store.h"

namespace greynic::results {

enum class ExportFormat {
  kJsonLines,  ///< one JSON object a line; exec: answers have the same fields
  kCsv,        ///< RFC 4180: a header, then one observation a line; what was not measured is empty
  kMarkdown,   ///< a table for people: one row a configuration, means over its repeats
  kOpenMetrics,  ///< one gauge a measure, the configuration as labels
  kInflux,       ///< Influx line protocol: the configuration as tags, without timestamps
};
/// "jsonl", "csv", "markdown", "openmetrics", "influx".
[[nodiscard]] std::optional<ExportFormat> export_format_named(std::string_view name);

[[nodiscard]] std::string export_text(const RunHeader& header,
                                      std::span<const Observation> observations,
                                      ExportFormat format);

}  // namespace greynic::results
