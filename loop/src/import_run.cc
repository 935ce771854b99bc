#include "greynic/loop/import_run.h"

#include <filesystem>

#include "greynic/results/store.h"

namespace greynic::loop {

Result<results::PerftestImport> import_run(const std::vector<std::string>& logs,
                                           const results::PerftestOptions& options,
                                           const std::string& out, const std::string& command) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(out, ignored)) {
    return fail(ErrorCode::kBadInput,
                out +
                    ": is there already, and an import makes a new run. Remove it, or choose "
                    "another name with -o");
  }
  auto import = results::import_perftest(logs, options);
  if (!import) return import;
  results::RunHeader header;
  header.campaign_name = "perftest";
  header.target = "import:perftest";
  header.command = command;
  header.settings = {{"logs", std::to_string(logs.size())}, {"name_pattern", options.name_pattern}};
  // In one piece, so that an import that is killed leaves nothing that the next would stumble over.
  auto run = results::RunStore::create_in_memory(header);
  if (!run) return pass_on(run);
  if (auto stored = run->append_all(import->observations); !stored) return pass_on(stored);
  if (auto saved = run->save_as(out); !saved) return pass_on(saved);
  return import;
}

}  // namespace greynic::loop
