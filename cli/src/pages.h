#pragma once

/// The manual of a command as data, and what is made of it: man pages and shell completion.

#include <string>
#include <vector>

namespace greynic::cli {

struct OptionPage {
  std::vector<std::string> names;  ///< "-o", "--out"; of an argument its one name
  std::string value;               ///< "TEXT", "UINT"; empty for a flag
  std::string standard;            ///< the default; empty when there is none to show
  std::string help;
  bool required = false;
  bool argument = false;  ///< given by its place
};

struct CommandPage {
  std::string name;
  std::string summary;
  std::string end_of_help;  ///< examples, with their heading
  std::vector<OptionPage> options;
  std::vector<CommandPage> commands;
};

/// A page for man(1). `path` names the command, such as {"greynic", "agent"}; section 1.
[[nodiscard]] std::string man_page(const std::vector<std::string>& path, const CommandPage& page);

/// A script that bash sources: it completes the commands and their options, else file names.
[[nodiscard]] std::string bash_completion(const CommandPage& program);

}  // namespace greynic::cli
