#include "pages.h"

#include <fmt/format.h>

namespace greynic::cli {
namespace {

/// Text as troff takes it: a hyphen that can be copied, no request at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

void add_options(const CommandPage& page, bool arguments, std::string& out) {
  for (const OptionPage& option : page.options) {
    if (option.argument != arguments) continue;
    out += fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(option.names, ", "))));
    if (!option.value.empty() && !arguments) out += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += "\n" + roff(option.help);
    if (!option.standard.empty()) out += fmt::format(" (default: {})", roff(option.standard));
    if (option.required) out += " (required)";
    out += "\n";
  }
}

void add_cases(const CommandPage& page, const std::string& path, std::string& out) {
  std::string words;
  for (const CommandPage& below : page.commands) words += below.name + " ";
  for (const OptionPage& option : page.options) {
    if (option.argument) continue;
    for (const std::string& name : option.names) words += name + " ";
  }
  if (!words.empty()) words.pop_back();
  out += fmt::format("    '{}') words='{}' ;;\n", path, words);
  for (const CommandPage& below : page.commands) {
    add_cases(below, path.empty() ? below.name : path + " " + below.name, out);
  }
}

}  // namespace

std::string man_page(const std::vector<std::string>& path, const CommandPage& page) {
  const std::string name = fmt::format("{}", fmt::join(path, "-"));
  std::string out =
      fmt::format(".TH {} 1\n.SH NAME\n{} \\- {}\n", roff(name), roff(name), roff(page.summary));
  out += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [options]",
                     roff(fmt::format("{}", fmt::join(path, " "))));
  for (const OptionPage& option : page.options) {
    if (!option.argument) continue;
    out += option.required ? " " + roff(option.names.front())
                           : " [" + roff(option.names.front()) + "]";
  }
  if (!page.commands.empty()) {
    out += " command\n.SH COMMANDS\n";
    for (const CommandPage& below : page.commands) {
      out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(below.name), roff(below.summary));
    }
  }
  out += "\n.SH OPTIONS\n";
  add_options(page, true, out);
  add_options(page, false, out);
  constexpr std::string_view kExamples = "\nExamples:\n";
  std::string_view end = page.end_of_help;
  const bool examples = end.starts_with(kExamples);
  if (examples) end.remove_prefix(kExamples.size());
  out += fmt::format(".SH {}\n.nf\n{}\n.fi\n", examples ? "EXAMPLES" : "NOTES", roff(end));
  return out;
}

std::string bash_completion(const CommandPage& program) {
  std::string cases;
  add_cases(program, "", cases);
  return fmt::format(R"(# Completes greynic in bash; made by `greynic help --format bash`.
_greynic_words() {{
  local words
  case "$1" in
{}    *) return 1 ;;
  esac
  echo "$words"
}}
_greynic() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command='' words next i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{command:+$command }}${{COMP_WORDS[i]}}"
    _greynic_words "$next" > /dev/null && command=$next
  done
  words=$(_greynic_words "$command")
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -X '-*' -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _greynic greynic
)",
                     cases);
}

}  // namespace greynic::cli
