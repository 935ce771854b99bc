#include "talk.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace greynic::cli {

int tell(const Error& error) {
  // A message may quote a file: what would steer the terminal is not passed on.
  std::string message = error.message;
  const auto steers = [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; };
  std::ranges::replace_if(message, steers, '?');
  fmt::print(stderr, "greynic: {}\n", message);
  return exit_code(error.code);
}

void say(std::string_view line) { fmt::print(stderr, "{}\n", line); }

void tell_infeasible(const std::vector<std::string>& lines, std::size_t left) {
  for (const std::string& line : lines) say("infeasible: " + line);
  if (left == 0) return;
  say(fmt::format(
      "{} infeasible tuples explained, {} not: the time was over; --deadline allows more",
      lines.size(), left));
}

}  // namespace greynic::cli
