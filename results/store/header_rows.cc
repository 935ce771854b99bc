#include "store/header_rows.h"

#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "greynic/files/json_file.h"
#include "store/checksum.h"
#include "store/run_schema.h"

namespace greynic::results {
namespace {

constexpr const char* kEnvironmentPrefix = "environment.";

void put_pairs(SQLite::Database& database, const char* table,
               const std::map<std::string, std::string>& pairs) {
  SQLite::Statement insert(database, fmt::format("INSERT INTO {} VALUES (?, ?)", table));
  for (const auto& [name, value] : pairs) {
    insert.reset();
    insert.bind(1, name);
    insert.bind(2, value);
    insert.exec();
  }
}

}  // namespace

std::map<std::string, std::string> get_pairs(SQLite::Database& database, const char* select) {
  std::map<std::string, std::string> pairs;
  SQLite::Statement rows(database, select);
  while (rows.executeStep()) pairs[rows.getColumn(0).getString()] = rows.getColumn(1).getString();
  return pairs;
}

void create_tables(SQLite::Database& database, const RunHeader& header) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  database.exec(kCreateTables);
  database.exec(kCreateChecksums);
  database.exec(create_flat_view({}));
  std::map<std::string, std::string> fields = {{"campaign_text", header.campaign_text},
                                               {"campaign_name", header.campaign_name},
                                               {"target", header.target},
                                               {"seed", std::to_string(header.seed)},
                                               {"command", header.command},
                                               {"version", GREYNIC_VERSION}};
  for (const auto& [name, value] : header.environment) fields[kEnvironmentPrefix + name] = value;
  put_pairs(database, "header", fields);
  database.exec("INSERT INTO header VALUES ('made', datetime('now'))");
  put_pairs(database, "setting", header.settings);
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", kFormatVersion));
  transaction.commit();
}

Result<RunHeader> read_header(SQLite::Database& database, const std::string& path) {
  auto fields = get_pairs(database, "SELECT name, value FROM header");
  RunHeader header;
  header.campaign_text = fields["campaign_text"];
  header.campaign_name = fields["campaign_name"];
  header.target = fields["target"];
  header.command = fields["command"];
  header.version = fields["version"];
  header.made = fields["made"];
  const std::string seed = fields["seed"];
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), header.seed);
  if (error != std::errc() || end != seed.data() + seed.size()) {
    return files::bad_value(path, "table header",
                            fmt::format("seed must be a whole number, not \"{}\"", seed));
  }
  for (const auto& [name, value] : fields) {
    if (name.starts_with(kEnvironmentPrefix)) {
      header.environment[name.substr(std::strlen(kEnvironmentPrefix))] = value;
    }
  }
  header.settings = get_pairs(database, "SELECT name, value FROM setting");
  return header;
}

void keep_header_checksum(SQLite::Database& database, const RunHeader& header) {
  database.exec(kCreateChecksums);
  SQLite::Statement put(database, "INSERT OR IGNORE INTO checksum VALUES ('header', ?)");
  put.bind(1, checksum_of(header));
  put.exec();
}

Result<void> check_header(SQLite::Database& database, const std::string& path,
                          const RunHeader& header) {
  if (!database.tableExists("checksum")) return {};
  SQLite::Statement row(database, "SELECT crc64 FROM checksum WHERE of = 'header'");
  if (!row.executeStep() || row.getColumn(0).getString() == checksum_of(header)) return {};
  return fail(ErrorCode::kBadInput,
              path +
                  ": the run is damaged: its header or its settings are not what was written; "
                  "restore a copy of the file, or remove it and measure again");
}

std::string difference(const RunHeader& stored, const RunHeader& asked) {
  if (stored.target != asked.target) {
    return fmt::format("it was made on target \"{}\", not \"{}\"", stored.target, asked.target);
  }
  if (stored.campaign_text != asked.campaign_text) {
    return stored.campaign_name == asked.campaign_name
               ? fmt::format("the campaign \"{}\" has changed since", asked.campaign_name)
               : fmt::format("it is of campaign \"{}\", not \"{}\"", stored.campaign_name,
                             asked.campaign_name);
  }
  if (stored.seed != asked.seed) {
    return fmt::format("it was made with seed {}, not {}", stored.seed, asked.seed);
  }
  for (const auto& [name, value] : asked.settings) {
    const auto found = stored.settings.find(name);
    if (found == stored.settings.end()) {
      return fmt::format("it was made without the setting {} = {}", name, value);
    }
    if (found->second != value) {
      return fmt::format("it was made with {} = {}, not {}", name, found->second, value);
    }
  }
  for (const auto& [name, value] : stored.settings) {
    if (!asked.settings.contains(name)) {
      return fmt::format("it was made with the setting {} = {}", name, value);
    }
  }
  return {};
}

}  // namespace greynic::results
