#pragma once

/// What libbpf and the verifier say, turned into errors of ours.

#include <functional>
#include <string>

#include "greynic/core/result.h"

namespace greynic::bpf {

/// Runs a call of libbpf, and keeps what it warns about on this thread instead of printing it.
[[nodiscard]] std::string warnings_of(const std::function<void()>& call);

/// The error of a call that failed with `error` (positive) after it had said `warnings`.
[[nodiscard]] tl::unexpected<Error> kernel_said_no(const std::string& what, int error,
                                                   const std::string& warnings = {});

}  // namespace greynic::bpf
