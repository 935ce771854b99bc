#pragma once

/// Observations as rows of a run file and back.

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <string>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "store/run_schema.h"

namespace greynic::results {

/// Writes observations inside the caller's transaction. Statements are prepared once.
class ObservationWriter {
 public:
  explicit ObservationWriter(SQLite::Database& database);
  /// Throws SQLite::Exception; SQLITE_CONSTRAINT when the key is stored already.
  void write(const Observation& observation);

 private:
  std::int64_t environment_id(const std::map<std::string, std::string>& environment);
  void write_counters(std::int64_t id, const Observation& observation);

  SQLite::Statement insert_observation_;
  SQLite::Statement insert_measure_;
  SQLite::Statement insert_counter_;
  SQLite::Statement insert_environment_;
  SQLite::Statement find_environment_;
  SQLite::Statement insert_checksum_;
  SQLite::Database& database_;
};

/// All observations by id. `path` is for messages: kBadInput names the row that cannot be
/// understood. Throws SQLITE_CORRUPT when one is not what was written.
Result<std::vector<Observation>> read_observations(SQLite::Database& database,
                                                   const std::string& path);

/// "2 of 120 observations are lost: 3, 17": those that are gone, or no longer what was written;
/// empty when none is, or nobody can tell.
std::string lost_observations(SQLite::Database& database, const std::string& path);

/// Adds the names that this observation brings; true when there was a new one.
bool add_columns(FlatColumns& columns, const Observation& observation);

}  // namespace greynic::results
