#include "command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <map>
#include <new>
#include <sstream>

#include "greynic/core/text.h"
#include "greynic/core/units.h"
#include "greynic/files/output_file.h"
#include "greynic/results/shell_words.h"
#include "nearest.h"

namespace greynic::cli {
namespace {

using Duration = std::chrono::nanoseconds;

/// Adds an option that shows its default.
template <typename T>
CLI::Option* add(CLI::App& app, const std::string& names, T& into, const std::string& help) {
  return app.add_option(names, into, help)->capture_default_str();
}

template <typename T>
CLI::Option* add_duration(CLI::App& app, const std::string& names, T& into,
                          const std::string& help) {
  return app
      .add_option_function<std::string>(
          names,
          [names, &into](const std::string& text) {
            const auto duration = parse_duration(text);
            if (!duration) throw CLI::ValidationError(names, duration.error().message);
            into = *duration;
          },
          help)
      ->type_name("DURATION");
}

/// A whole number from 0 to 2^64 - 1; what is none is refused, not wrapped around.
template <typename T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& into, const std::string& help) {
  return app
      .add_option_function<std::string>(
          names,
          [names, &into](const std::string& text) {
            std::uint64_t number = 0;
            const auto [end, wrong] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            if (wrong != std::errc() || end != text.data() + text.size()) {
              throw CLI::ValidationError(
                  names, text + " is no whole number from 0 to 18446744073709551615");
            }
            into = number;
          },
          help)
      ->type_name("INT");
}

/// kBadInput where two options would write one file.
Result<void> outputs_differ(const Option::Outputs& outputs) {
  std::map<std::filesystem::path, std::string> named;
  for (const CLI::Option* output : outputs) {
    for (const std::string& path : output->results()) {
      std::error_code none;
      const auto file =
          std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
      if (std::filesystem::is_other(file, none)) continue;  // a device or a pipe takes both
      const auto [other, first] = named.emplace(file, output->get_name());
      if (first) continue;
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: both {} and {} would write it; name two files", path,
                              other->second, output->get_name()));
    }
  }
  return {};
}

/// A word, and the files that a target names within it: twin:FILE?switch=FILE&fleet=FILE.
void add_files_of(const std::string& word, std::vector<std::string>& files) {
  files.push_back(word);
  for (std::size_t at = 0; (at = word.find_first_of(":?=", at)) != std::string::npos;) {
    ++at;
    files.push_back(word.substr(at, word.find_first_of("?&", at) - at));
  }
}

/// kBadInput where an option of the command would write a file that another one reads.
Result<void> outputs_are_no_inputs(const CLI::App& app, const Option::Outputs& outputs) {
  std::vector<std::string> inputs;
  for (const CLI::Option* option : app.get_options()) {
    if (outputs.contains(option)) continue;
    for (const std::string& word : option->results()) add_files_of(word, inputs);
  }
  for (const CLI::Option* output : outputs) {
    for (const std::string& path : output->results()) {
      if (auto good = files::not_an_input(path, inputs); !good) return good;
    }
  }
  return {};
}

OptionPage page_of(const CLI::Option& option) {
  OptionPage page;
  for (const std::string& name : option.get_snames()) page.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) page.names.push_back("--" + name);
  page.argument = page.names.empty();
  if (page.argument) page.names = {option.get_name(true)};
  if (option.get_expected_max() != 0) page.value = option.get_type_name();
  page.help = option.get_description();
  page.standard = option.get_default_str();
  page.required = option.get_required();
  return page;
}

CommandPage page_of(const CLI::App& app) {
  CommandPage page{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) page.options.push_back(page_of(*option));
  for (const CLI::App* below : app.get_subcommands({})) page.commands.push_back(page_of(*below));
  return page;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* below : app.get_subcommands({})) names.push_back(below->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The command that was called, as far as the command line was understood.
const CLI::App* called(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : path_of(*app.get_parent()) + " " + app.get_name();
}

/// What is wrong with the command line, in one line, with what was probably meant.
std::string complaint(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = *called(&root);
  for (const std::string& word : root.remaining(true)) {
    if (word == "--") break;  // what follows belongs to another program
    if (word.starts_with("-")) {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("there is no option {}{}", name, suggestion(name, names_of_options(app)));
    }
    const auto commands = names_of_commands(app);
    if (!commands.empty()) {
      return fmt::format("there is no command '{}'{}", word, suggestion(word, commands));
    }
  }
  return error.what();
}

}  // namespace

Option Option::required() const { return {option_->required(), outputs_}; }
Option Option::range(int low, int high) const {
  option_->type_name(fmt::format("[{}..{}]", low, high));
  return {option_->check(CLI::Range(low, high).description("")), outputs_};
}
Option Option::range(double low, double high) const {
  option_->type_name(fmt::format("[{}..{}]", low, high));
  return {option_->check(CLI::Range(low, high).description("")), outputs_};
}
Option Option::choices(std::vector<std::string> words) const {
  option_->type_name("{" + CLI::detail::join(words, ",") + "}");
  return {option_->check(CLI::IsMember(std::move(words)).description("")), outputs_};
}
Option Option::excludes(const Option& other) const {
  return {option_->excludes(other.option_), outputs_};
}
Option Option::needs(const Option& other) const {
  return {option_->needs(other.option_), outputs_};
}
Option Option::words(int count) const { return {option_->expected(count), outputs_}; }
Option Option::list() const { return {option_->allow_extra_args(true), outputs_}; }
Option Option::writes() const {
  outputs_->insert(option_);
  return *this;
}

Option Command::option(const std::string& names, std::string& into, const std::string& help) {
  return made(add(*app_, names, into, help));
}
Option Command::option(const std::string& names, int& into, const std::string& help) {
  return made(add(*app_, names, into, help));
}
Option Command::option(const std::string& names, std::optional<int>& into,
                       const std::string& help) {
  return made(app_->add_option(names, into, help));
}
Option Command::option(const std::string& names, std::uint64_t& into, const std::string& help) {
  return made(add_number(*app_, names, into, help)->default_str(std::to_string(into)));
}
Option Command::option(const std::string& names, std::optional<std::uint64_t>& into,
                       const std::string& help) {
  return made(add_number(*app_, names, into, help));
}
Option Command::option(const std::string& names, double& into, const std::string& help) {
  return made(add(*app_, names, into, help));
}
Option Command::option(const std::string& names, std::vector<std::string>& into,
                       const std::string& help) {
  CLI::Option* option = app_->add_option(names, into, help);
  if (!into.empty()) option->capture_default_str();
  return made(option->get_positional() ? option : option->allow_extra_args(false));
}
Option Command::option(const std::string& names, Duration& into, const std::string& help) {
  std::string standard = to_string(into);
  std::erase(standard, ' ');  // "1s" can be typed
  return made(add_duration(*app_, names, into, help)->default_str(standard));
}
Option Command::option(const std::string& names, std::optional<Duration>& into,
                       const std::string& help) {
  return made(add_duration(*app_, names, into, help));
}
Option Command::option(const std::string& names,
                       std::function<Result<void>(const std::string&)> read,
                       const std::string& help) {
  return made(app_->add_option_function<std::string>(
      names,
      [names, read = std::move(read)](const std::string& word) {
        if (const auto done = read(word); !done) {
          throw CLI::ValidationError(names, done.error().message);
        }
      },
      help));
}
Option Command::flag(const std::string& names, bool& into, const std::string& help) {
  return made(app_->add_flag(names, into, help));
}

Command Command::command(const std::string& name, const std::string& summary) {
  return {app_->add_subcommand(name, summary), exit_code_};
}

void Command::needs_command() { app_->require_subcommand(1); }

void Command::run(std::function<int()> action) {
  app_->callback(
      [app = app_, exit_code = exit_code_, outputs = outputs_, action = std::move(action)] {
        if (!app->get_subcommands().empty()) return;
        auto good = outputs_are_no_inputs(*app, *outputs);
        if (good) good = outputs_differ(*outputs);
        *exit_code = good ? action() : tell(good.error());
      });
}

Program::Program()
    : app_(std::make_unique<CLI::App>(
          "greynic finds the scalability walls of an RDMA NIC, names their causes, fits laws that "
          "predict bandwidth and latency, and proposes a proven-equivalent rule layout that is "
          "faster.",
          "greynic")) {
  app_->set_version_flag("--version", GREYNIC_VERSION);
  app_->require_subcommand(1);
  app_->footer(
      "Exit codes: 0 done, 1 wall or regression found, 2 bad usage or input, 3 device or right "
      "missing or output not written, 4 our bug.\n\nStart here:\n  greynic devices\n  greynic tune "
      "--help");
}

Program::~Program() = default;

Command Program::command(const std::string& name, const std::string& summary,
                         const std::string& examples) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->footer("\nExamples:\n" + examples);
  return {command, &exit_code_};
}

void Program::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    std::ostringstream text;
    exit_code_ = app_->exit(success, text, text);
    put(text.str());
  } catch (const CLI::ParseError& error) {
    exit_code_ = tell(
        {ErrorCode::kBadInput, fmt::format("{}\n`{} --help` shows how it is used",
                                           complaint(*app_, error), path_of(*called(app_.get())))});
  }
  flush_output();
}

int Program::run(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (!bad_utf8(argv[i])) continue;
    return tell({ErrorCode::kBadInput,
                 fmt::format("word {} of the command line is no UTF-8 text: {}", i, argv[i])});
  }
  command_line_ = results::command_line({argv, static_cast<std::size_t>(argc)});
  if (argc < 2) {
    say(app_->help());
    return exit_code(ErrorCode::kBadInput);
  }
  try {
    parse(argc, argv);
  } catch (const LostOutput& lost) {
    // A command that had failed before says more by its own code.
    return exit_code_ > 1 ? exit_code_ : tell(lost.error);
  } catch (const std::filesystem::filesystem_error& error) {
    return tell({ErrorCode::kIo, error.what()});
  } catch (const std::bad_alloc&) {
    return tell({ErrorCode::kTooBig, "this needs more memory than there is"});
  } catch (const std::exception& error) {
    return tell({ErrorCode::kInternal, std::string("this is our bug: ") + error.what()});
  }
  return exit_code_;
}

Result<CLI::App*> Program::find(const std::vector<std::string>& command) const {
  CLI::App* app = app_.get();
  for (const std::string& name : command) {
    const auto below =
        app->get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
    if (below.empty()) {
      return fail(ErrorCode::kBadInput, fmt::format("there is no command '{}'{}", name,
                                                    suggestion(name, names_of_commands(*app))));
    }
    app = below.front();
  }
  return app;
}

Result<std::string> Program::help(const std::vector<std::string>& command) const {
  const auto app = find(command);
  if (!app) return pass_on(app);
  // App::help would show the help of the command that was called, which is `help`.
  return (*app)->get_formatter()->make_help(*app, path_of(**app), CLI::AppFormatMode::Normal);
}

Result<CommandPage> Program::page(const std::vector<std::string>& command) const {
  const auto app = find(command);
  if (!app) return pass_on(app);
  return page_of(**app);
}

}  // namespace greynic::cli
