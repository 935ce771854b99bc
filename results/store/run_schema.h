#pragma once

/// The tables and views of a run file, as docs/formats/run.md documents them.

#include <cstdint>
#include <set>
#include <string>

namespace greynic::results {

/// "grey" in the SQLite header's application_id: tells a run from any other SQLite file.
inline constexpr std::int32_t kApplicationId = 0x67726579;
/// The file format's version, in the SQLite header's user_version.
inline constexpr int kFormatVersion = 1;

/// Creates every table and fixed view.
extern const char* const kCreateTables;
/// Creates the table of checksums, which older runs lack.
extern const char* const kCreateChecksums;
/// Creates the table of counters while traffic ran, which runs without samples lack.
extern const char* const kCreateCounterSamples;
/// The tables' names, as a list of SQL.
extern const char* const kTableNames;

/// Names that are columns of the view `flat`: one row an observation, one column a factor or
/// measure.
struct FlatColumns {
  std::set<std::string> factors;
  std::set<std::string> measures;
};

/// DROP and CREATE of the view `flat` for these columns.
std::string create_flat_view(const FlatColumns& columns);

}  // namespace greynic::results
