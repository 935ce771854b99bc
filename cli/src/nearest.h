#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace greynic::cli {

/// "; did you mean 'plan'?" when one of `known` is so close to `word` (edit distance, where two
/// neighbours that changed places count as one) that it is probably meant; else an empty text.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace greynic::cli
