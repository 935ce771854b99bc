#pragma once

/// A run file as an SQLite database: opened whatever a kill has left beside it, and held to be what
/// greynic writes before anything of it is believed.

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>
#include <sqlite3.h>

#include <memory>
#include <string>

#include "greynic/core/result.h"
#include "greynic/core/text.h"

namespace greynic::results {

inline constexpr int kBusyTimeoutMs = 5000;  ///< a reader waits this long for a commit to end

/// Runs `work` and turns what SQLite throws into an error that names the file.
template <typename Work>
auto guarded(const std::string& path, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    const std::string reason = printable(error.what());  // it quotes what the file holds
    switch (error.getErrorCode()) {
      case SQLITE_NOTADB:
        return fail(ErrorCode::kBadInput, path + ": not a run: no SQLite database");
      case SQLITE_CORRUPT:
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: the run is damaged ({}); `sqlite3 {} .recover` may save rows",
                                path, reason, path));
      case SQLITE_ERROR:
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: not a run as greynic writes it: {}", path, reason));
      default:
        return fail(ErrorCode::kIo, fmt::format("{}: {}", path, reason));
    }
  }
}

/// Opens for reading. A transaction that a killed process has left open is rolled back first: in
/// place, or in a copy in memory where the file may not be written.
[[nodiscard]] std::unique_ptr<SQLite::Database> open_for_reading(const std::string& path);

/// kBadInput when the database is none of greynic's, of another version, damaged in its structure,
/// or has code in it: views for tables, triggers.
[[nodiscard]] Result<void> check_format(SQLite::Database& database, const std::string& path);

/// True for a file that was just created, or whose creation was cut short.
[[nodiscard]] bool is_fresh(SQLite::Database& database);

}  // namespace greynic::results
