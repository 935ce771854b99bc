#include "greynic/results/shell_words.h"

namespace greynic::results {

std::string shell_word(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-") ==
          std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_line(std::span<const char* const> arguments) {
  std::string line = "greynic";
  for (std::size_t i = 1; i < arguments.size(); ++i) line += " " + shell_word(arguments[i]);
  return line;
}

}  // namespace greynic::results
