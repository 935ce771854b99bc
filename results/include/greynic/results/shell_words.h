#pragma once

/// Commands as text that a shell takes back: kept with a run, and shown in its report.

#include <span>
#include <string>

namespace greynic::results {

/// `word` as it is where a shell takes it so, else in single quotes.
[[nodiscard]] std::string shell_word(const std::string& word);

/// main()'s arguments as one line. The program is called greynic, wherever it lies.
[[nodiscard]] std::string command_line(std::span<const char* const> arguments);

}  // namespace greynic::results
