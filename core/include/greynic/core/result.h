#pragma once

/// Errors as values. A function that can fail because of the world (a bad file, a missing device, a
/// fit that does not converge) returns Result<T>. What a device under test refuses is not an error:
/// it is an Outcome in the Observation. Whoever first knows the cause writes the message, with the
/// remedy; callers add what they were doing through Error::while_doing.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace greynic {

enum class ErrorCode {
  kBadInput,        ///< a file, flag or value is wrong; the user can mend it
  kIo,              ///< the file system or a socket said no
  kMissing,         ///< a device, library, program or right is not there
  kUnsupported,     ///< understood, but this target or format cannot do it
  kRefused,         ///< a device refused a control operation outside a measurement
  kInfeasible,      ///< constraints leave nothing
  kTooFewPoints,    ///< a fit has fewer distinct points than it needs
  kNotMeasured,     ///< the run lacks a measurement that the question needs
  kAllowanceSpent,  ///< the tests allowed are used up; what was found before stands
  kNotConverged,    ///< an iteration ended before its answer was good
  kRankDeficient,   ///< the data cannot tell parameters apart
  kTooBig,          ///< beyond the stated limits of size, time or memory
  kInterrupted,     ///< stopped by the user; what was done is kept
  kInternal,        ///< our bug
};

/// The program's exit code for an error: 2 bad usage or input, 3 device or right missing or output
/// not written, 4 our bug.
[[nodiscard]] constexpr int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
    case ErrorCode::kMissing:
    case ErrorCode::kRefused:
      return 3;
    case ErrorCode::kInternal:
      return 4;
    case ErrorCode::kInterrupted:
      return 130;
    default:
      return 2;
  }
}

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  /// The same error, prefixed by what the caller was doing; ready to be returned from any Result.
  [[nodiscard]] tl::unexpected<Error> while_doing(std::string_view action) const {
    return tl::unexpected<Error>(Error{code, std::string(action) + ": " + message});
  }
};

template <typename T>
using Result = tl::expected<T, Error>;

/// Makes the failing side of a Result: `return fail(ErrorCode::kBadInput, "...");`.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// Passes an error of one Result type on as another: `if (!x) return pass_on(x);`.
template <typename T>
[[nodiscard]] tl::unexpected<Error> pass_on(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

}  // namespace greynic
