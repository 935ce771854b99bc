#pragma once

/// Small helpers of this room: errors of verbs calls, and one-line files.

#include <filesystem>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::verbs {

/// kRefused: "ibv_create_qp: Cannot allocate memory (errno 12)".
[[nodiscard]] tl::unexpected<Error> refused(std::string_view call, int error_number);

/// For destructors: the device refused to destroy something. Silent for EIO, which is what every
/// call gives once the device itself is gone.
void log_destruction(std::string_view call, int error_number) noexcept;

/// First line of a file; empty when it cannot be read.
[[nodiscard]] std::string read_line(const std::filesystem::path& path);

}  // namespace greynic::verbs
