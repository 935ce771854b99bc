#pragma once

/// Text inside XML and HTML: what JUnit files and reports are written with.

#include <string>
#include <string_view>

namespace greynic::results {

/// `text` with & < > and " as entities. What XML 1.0 cannot write becomes '?'.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace greynic::results
