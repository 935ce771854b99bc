#include "store/database.h"

#include <SQLiteCpp/Backup.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "store/run_schema.h"

namespace greynic::results {
namespace {

namespace fs = std::filesystem;

/// A folder that nobody else can look into, as long as this object lasts.
class PrivateFolder {
 public:
  PrivateFolder() : path_((fs::temp_directory_path() / "greynic-run-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw fs::filesystem_error("cannot be made", path_,
                                 std::error_code(errno, std::generic_category()));
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  [[nodiscard]] fs::path path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<SQLite::Database> opened(const std::string& path, int how) {
  auto database = std::make_unique<SQLite::Database>(path, how, kBusyTimeoutMs);
  database->exec("PRAGMA trusted_schema = OFF");
  database->exec("PRAGMA cell_size_check = ON");
  return database;
}

/// The first look at the file, which is where SQLite meets the journal of a killed process.
void look(SQLite::Database& database) {
  (void)database.execAndGet("SELECT count(*) FROM sqlite_master").getInt();
}

std::unique_ptr<SQLite::Database> recovered_copy(const std::string& path) {
  const PrivateFolder folder;
  const fs::path copy = folder.path() / "run.db";
  fs::copy_file(path, copy);
  fs::copy_file(path + "-journal", copy.string() + "-journal");
  for (const std::string& file : {copy.string(), copy.string() + "-journal"}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  }
  const auto beside = opened(copy.string(), SQLite::OPEN_READWRITE);
  look(*beside);
  auto memory = std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE);
  SQLite::Backup backup(*memory, *beside);
  backup.executeStep();
  return memory;
}

int pragma(SQLite::Database& database, const char* name) {
  return database.execAndGet(std::string("PRAGMA ") + name).getInt();
}

}  // namespace

std::unique_ptr<SQLite::Database> open_for_reading(const std::string& path) {
  const auto is_rollback = [](const SQLite::Exception& error) {
    return error.getErrorCode() == SQLITE_READONLY || error.getErrorCode() == SQLITE_CANTOPEN;
  };
  try {
    auto database = opened(path, SQLite::OPEN_READONLY);
    look(*database);
    return database;
  } catch (const SQLite::Exception& error) {
    if (!is_rollback(error) || !fs::exists(path + "-journal")) throw;
  }
  try {
    look(*opened(path, SQLite::OPEN_READWRITE));
    return opened(path, SQLite::OPEN_READONLY);
  } catch (const SQLite::Exception& error) {
    if (!is_rollback(error)) throw;
  }
  return recovered_copy(path);
}

Result<void> check_format(SQLite::Database& database, const std::string& path) {
  if (pragma(database, "application_id") != kApplicationId) {
    return fail(ErrorCode::kBadInput,
                path + ": not a run: an SQLite database, but none that greynic wrote");
  }
  const int version = pragma(database, "user_version");
  if (version != kFormatVersion) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: run format version {}, but this greynic reads version {}; use the "
                            "greynic that wrote it",
                            path, version, kFormatVersion));
  }
  const int foreign = database
                          .execAndGet(
                              "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'"
                              " OR (type = 'view' AND name IN (" +
                              std::string(kTableNames) + ")) OR sql LIKE 'CREATE VIRTUAL%'")
                          .getInt();
  if (foreign > 0) {
    return fail(ErrorCode::kBadInput,
                path +
                    ": not a run as greynic writes it: triggers, or views in place of tables; "
                    "measure again, or ask for a copy made by greynic");
  }
  return {};
}

bool is_fresh(SQLite::Database& database) {
  return pragma(database, "application_id") == 0 && pragma(database, "user_version") == 0 &&
         database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
}

}  // namespace greynic::results
