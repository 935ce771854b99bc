#include <fmt/core.h>

#include <filesystem>
#include <map>

#include "greynic/files/json_file.h"
#include "perftest/log.h"

namespace greynic::results {
namespace {

Result<void> add_log(std::string_view text, const std::string& source,
                     const PerftestOptions& options, PerftestImport& into) {
  Configuration from_name;
  if (!options.name_pattern.empty()) {
    auto settings = settings_from_name(options.name_pattern, source);
    if (!settings) return pass_on(settings);
    from_name = std::move(*settings);
  }
  auto reports = trimmed(text).starts_with('{')
                     ? read_perftest_json(text, source, options, into.warnings)
                     : read_perftest_text(text, source, into.warnings);
  if (!reports) return pass_on(reports);
  const std::size_t before = into.observations.size();
  for (const PerftestReport& report : *reports) {
    if (!report.failure.empty() && !report.rows.empty()) {
      into.warnings.push_back(fmt::format("{}: it also says: {}", source, report.failure));
    }
    auto observations = translate(report, from_name, source);
    if (!observations) return pass_on(observations);
    for (Observation& observation : *observations) {
      into.observations.push_back(std::move(observation));
    }
  }
  if (into.observations.size() == before) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: holds no perftest result: neither a table (\"#bytes ...\") nor JSON "
                    "of --out_json; give the client's log",
                    source));
  }
  return {};
}

void count_repeats(PerftestImport& import) {
  std::map<std::string, int> seen;
  for (Observation& observation : import.observations) {
    observation.repeat = seen[observation.asked.name()]++;
  }
}

}  // namespace

Result<PerftestImport> import_perftest(std::span<const std::string> paths,
                                       const PerftestOptions& options) {
  PerftestImport import;
  for (const std::string& path : paths) {
    auto text = files::read_text(path);
    if (!text) return pass_on(text);
    if (auto added = add_log(*text, path, options, import); !added) return pass_on(added);
  }
  count_repeats(import);
  return import;
}

Result<PerftestImport> parse_perftest(std::string_view text, const std::string& source,
                                      const PerftestOptions& options) {
  PerftestImport import;
  if (auto added = add_log(text, source, options, import); !added) return pass_on(added);
  count_repeats(import);
  return import;
}

}  // namespace greynic::results
