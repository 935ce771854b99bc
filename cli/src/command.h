#pragma once

/// A command of the program: its options, its help and what it does. One file (command.cc) knows
/// the library that parses the command line, so that the others compile quickly. The same
/// description makes `--help`, the man pages and the shell completion (pages.h).

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "pages.h"
#include "talk.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace greynic::cli {

/// An option that was added to a command; its setters chain.
class Option {
 public:
  using Outputs = std::set<const CLI::Option*>;
  Option(CLI::Option* option, std::shared_ptr<Outputs> outputs)
      : option_(option), outputs_(std::move(outputs)) {}

  Option required() const;
  Option range(int low, int high) const;
  Option range(double low, double high) const;
  /// Only these words.
  Option choices(std::vector<std::string> words) const;
  Option excludes(const Option& other) const;
  Option needs(const Option& other) const;
  /// Takes exactly so many words.
  Option words(int count) const;
  /// Takes every word up to the next option.
  Option list() const;
  /// Names a file to write: none of the files that the other options name.
  Option writes() const;

 private:
  CLI::Option* option_;
  std::shared_ptr<Outputs> outputs_;
};

/// A command, or one below it. The variables that options fill must live as long as the action that
/// run() was given: let the action own them (`[flags] { return fit(*flags); }`).
class Command {
 public:
  Command(CLI::App* app, int* exit_code)
      : app_(app), exit_code_(exit_code), outputs_(std::make_shared<Option::Outputs>()) {}

  /// `names`: "--seed", "-o,--out", or "campaign" for an argument that is given by its place. The
  /// value that `into` has now is the default, and --help shows it.
  Option option(const std::string& names, std::string& into, const std::string& help);
  Option option(const std::string& names, int& into, const std::string& help);
  Option option(const std::string& names, std::optional<int>& into, const std::string& help);
  Option option(const std::string& names, std::uint64_t& into, const std::string& help);
  Option option(const std::string& names, std::optional<std::uint64_t>& into,
                const std::string& help);
  Option option(const std::string& names, double& into, const std::string& help);
  /// Once for each word; list() lets one option take several.
  Option option(const std::string& names, std::vector<std::string>& into, const std::string& help);
  /// "2s", "100ms"; a number without its unit is refused.
  Option option(const std::string& names, std::chrono::nanoseconds& into, const std::string& help);
  Option option(const std::string& names, std::optional<std::chrono::nanoseconds>& into,
                const std::string& help);
  /// A word that `read` understands; the error that it returns is shown.
  Option option(const std::string& names, std::function<Result<void>(const std::string&)> read,
                const std::string& help);
  /// An option without a value.
  Option flag(const std::string& names, bool& into, const std::string& help);

  /// A command below this one, such as `greynic agent init`.
  Command command(const std::string& name, const std::string& summary);
  /// One of the commands below must be named.
  void needs_command();
  /// What the command does when it, and none below it, is called; gives the exit code.
  void run(std::function<int()> action);

 private:
  [[nodiscard]] Option made(CLI::Option* option) const { return {option, outputs_}; }

  CLI::App* app_;
  int* exit_code_;
  std::shared_ptr<Option::Outputs> outputs_;
};

/// The program: all its commands.
class Program {
 public:
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// `examples` end the command's --help, one command line a line.
  Command command(const std::string& name, const std::string& summary, const std::string& examples);
  /// Parses the command line, runs the command, and gives the exit code: 0 done, 1 wall or
  /// regression found, 2 bad usage or input, 3 device or right missing or output not written,
  /// 4 our bug.
  int run(int argc, const char* const* argv);
  /// The command line that runs, as a shell takes it back; kept with the runs that it makes.
  [[nodiscard]] const std::string& command_line() const { return command_line_; }

  /// What --help prints for a command, such as {"agent", "init"}; for the program when empty.
  /// kBadInput names the command that comes nearest.
  [[nodiscard]] Result<std::string> help(const std::vector<std::string>& command) const;
  /// The same as data.
  [[nodiscard]] Result<CommandPage> page(const std::vector<std::string>& command) const;

 private:
  [[nodiscard]] Result<CLI::App*> find(const std::vector<std::string>& command) const;
  void parse(int argc, const char* const* argv);

  std::unique_ptr<CLI::App> app_;
  std::string command_line_;
  int exit_code_ = 0;
};

}  // namespace greynic::cli
