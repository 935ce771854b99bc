#pragma once

/// Layout files, read without a tree of all their values.

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::files {

struct LayoutParts {
  nlohmann::json frame;  ///< the document, with no table in its lists of tables
  std::vector<std::vector<LayoutTable>> tables;  ///< of each list, as they stand in the text
};

/// The parts of a layout, or of layouts for models; each list of tables is as layout.schema.json and
/// layout_from_json want it, and the frame was held against nothing. Nothing for any other text: what
/// is wrong with it, the tree tells.
[[nodiscard]] std::optional<LayoutParts> layout_parts(std::string_view text);

/// Is this what the rules of a matcher look at?
[[nodiscard]] bool is_under(const Match& match, const Mask& mask);

}  // namespace greynic::files
