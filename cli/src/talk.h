#pragma once

/// The doors to the terminal: what a command found goes to stdout, what it says to people to
/// stderr. What comes from outside and steers a terminal is spelled out on both (core/text.h).

#include <fmt/core.h>

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::cli {

/// Thrown where stdout takes no more; Program::run tells it.
struct LostOutput {
  Error error;
};

/// Prints on stdout.
void put(std::string_view text);
template <typename... T>
void print(fmt::format_string<T...> format, T&&... values) {
  put(fmt::format(format, std::forward<T>(values)...));
}
/// A document, one value a line.
void put_json(const nlohmann::json& document);
/// Data in a format of others: byte for byte, unless stdout is a terminal.
void put_data(std::string_view text);
/// Whatever was printed has arrived, or LostOutput.
void flush_output();

/// Opens what of stdin, stdout and stderr is closed, so that no file of ours takes their place.
void hold_standard_streams();

/// Tells an error and gives the exit code that goes with it: `return tell(error);`.
[[nodiscard]] int tell(const Error& error);

/// A warning or a hint.
void say(std::string_view line);

/// Infeasible tuples and what forbids them, one a line, and how many more there are that were not
/// explained.
void tell_infeasible(const std::vector<std::string>& lines, std::size_t left);

}  // namespace greynic::cli
