#include <fmt/core.h>

#include "greynic/twin/validation.h"

/// The section of one RNIC on the page of validation: a table, what the model lacks, the pictures.

namespace greynic::twin {

std::string ValidationReport::to_markdown() const {
  std::string page = fmt::format(
      "### {}\n\n"
      "{} parameters were fitted to published curves of this RNIC; they explain {} published "
      "points.\n\n"
      "| item | curve | published | twin | error | accepted |\n|---|---|---|---|---|---|\n",
      model, free_parameter_count, published_point_count);
  for (const CheckRow& row : rows) {
    const std::string unit = row.unit.empty() ? "" : " " + row.unit;
    const std::string error = row.published != 0 ? fmt::format("{:+.1f} %", 100 * row.error()) : "";
    page += fmt::format("| {} | {} | {:.4g}{} | {:.4g} | {} | {:.4g} to {:.4g} |\n", row.item,
                        row.curve, row.published, unit, row.twin, error, row.low, row.high);
  }
  for (const std::string& note : notes) page += fmt::format("\nNote: {}.\n", note);
  page += '\n';
  for (const Picture& picture : pictures) {
    page += fmt::format("![{}](pictures/{}_{}.svg)\n", picture.title, id, picture.file);
  }
  return page;
}

}  // namespace greynic::twin
