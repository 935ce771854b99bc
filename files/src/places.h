#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace greynic::files {

/// "line 3, column 7" of a byte offset, both counted from 1.
[[nodiscard]] std::string place_of(std::string_view text, std::size_t offset);

}  // namespace greynic::files
