#pragma once

/// The header and the settings of a run as rows and back.

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <string>

#include "greynic/results/store.h"

namespace greynic::results {

/// Makes every table and view of a run, and writes its header.
void create_tables(SQLite::Database& database, const RunHeader& header);

[[nodiscard]] Result<RunHeader> read_header(SQLite::Database& database, const std::string& path);

/// Runs of before there were checksums get one for their header.
void keep_header_checksum(SQLite::Database& database, const RunHeader& header);
/// kBadInput when the header is not what was written.
[[nodiscard]] Result<void> check_header(SQLite::Database& database, const std::string& path,
                                        const RunHeader& header);

/// What makes `asked` another run than `stored`; empty when they are one.
[[nodiscard]] std::string difference(const RunHeader& stored, const RunHeader& asked);

/// The rows of a SELECT of two columns.
[[nodiscard]] std::map<std::string, std::string> get_pairs(SQLite::Database& database,
                                                           const char* select);

}  // namespace greynic::results
