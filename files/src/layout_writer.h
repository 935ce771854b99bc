#pragma once

/// Layout files, written as they come: no tree and no text of the whole.

#include <functional>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::files {

/// Takes a text piece by piece.
using TextSink = std::function<Result<void>(std::string_view)>;

/// JSON with one value a line and keys in order.
[[nodiscard]] Result<void> write_text_of(const Layout& layout, const TextSink& sink);
[[nodiscard]] Result<void> write_text_of(const ModelLayouts& layouts, const TextSink& sink);

/// A layout without models, whose file is that of the layout alone.
[[nodiscard]] bool is_for_all(const ModelLayouts& layouts);

}  // namespace greynic::files
