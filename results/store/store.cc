#include "greynic/results/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "greynic/files/campaign_file.h"
#include "store/observation_rows.h"
#include "store/run_schema.h"

namespace greynic::results {
namespace {

constexpr int kBusyTimeoutMs = 5000;  ///< a reader waits this long for a commit to end

/// Holds flock on the run file, so that one process at a time appends. It must outlive the SQLite
/// connection: closing any descriptor of a file drops the POSIX locks that SQLite holds on it.
class AppendLock {
 public:
  static Result<AppendLock> take(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) {
      return fail(ErrorCode::kIo,
                  fmt::format("{}: cannot be opened for writing: {}", path, std::strerror(errno)));
    }
    AppendLock lock(descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: another process is writing this run; wait for it to end, or "
                              "choose another output with -o",
                              path));
    }
    return lock;
  }
  AppendLock(AppendLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  AppendLock& operator=(AppendLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~AppendLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  explicit AppendLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// Runs `work` and turns what SQLite throws into an error that names the file.
template <typename Work>
auto guarded(const std::string& path, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    switch (error.getErrorCode()) {
      case SQLITE_NOTADB:
        return fail(ErrorCode::kBadInput, path + ": not a run: no SQLite database");
      case SQLITE_CORRUPT:
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: the run is damaged ({}); `sqlite3 {} .recover` may save rows",
                                path, error.what(), path));
      case SQLITE_ERROR:
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}: not a run as greynic writes it: {}", path, error.what()));
      default:
        return fail(ErrorCode::kIo, fmt::format("{}: {}", path, error.what()));
    }
  }
}

int pragma(SQLite::Database& database, const char* name) {
  return database.execAndGet(std::string("PRAGMA ") + name).getInt();
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
  return {};
}

/// True for a file that was just created, or whose creation was cut short.
bool is_fresh(SQLite::Database& database) {
  return pragma(database, "application_id") == 0 && pragma(database, "user_version") == 0 &&
         database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
}

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

std::map<std::string, std::string> get_pairs(SQLite::Database& database, const char* select) {
  std::map<std::string, std::string> pairs;
  SQLite::Statement rows(database, select);
  while (rows.executeStep()) pairs[rows.getColumn(0).getString()] = rows.getColumn(1).getString();
  return pairs;
}

constexpr const char* kEnvironmentPrefix = "environment.";

void create_tables(SQLite::Database& database, const RunHeader& header) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  database.exec(kCreateTables);
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
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: table header: seed must be a whole number, not \"{}\"", path, seed));
  }
  for (const auto& [name, value] : fields) {
    if (name.starts_with(kEnvironmentPrefix)) {
      header.environment[name.substr(std::strlen(kEnvironmentPrefix))] = value;
    }
  }
  header.settings = get_pairs(database, "SELECT name, value FROM setting");
  return header;
}

/// What makes `asked` another run than `stored`; empty when they are one.
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

Result<void> check_storable(const Observation& observation) {
  const std::string name =
      fmt::format("observation of {} (repeat {})", observation.asked.name(), observation.repeat);
  if (observation.outcome == Outcome::kNotRun) {
    return fail(ErrorCode::kInternal, name + " was not run, so there is nothing to store");
  }
  for (const auto& [measure, value] : observation.measures) {
    if (!std::isfinite(value.value) || !std::isfinite(value.standard_error.value_or(0.0))) {
      return fail(ErrorCode::kInternal, fmt::format("{}: {} is not finite", name, measure));
    }
  }
  for (const auto* counters : {&observation.counters_before, &observation.counters_after}) {
    for (const auto& [counter, value] : *counters) {
      if (!std::isfinite(value)) {
        return fail(ErrorCode::kInternal, fmt::format("{}: {} is not finite", name, counter));
      }
    }
  }
  return {};
}

}  // namespace

struct RunStore::State {
  std::string path;
  std::optional<AppendLock> lock;  // declared before the database: it must be released after it
  std::unique_ptr<SQLite::Database> database;
  RunHeader header;
  FlatColumns columns;
  std::unique_ptr<ObservationWriter> writer;  // empty: opened for reading
};

RunStore::RunStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

Result<RunStore> RunStore::open_to_append(const std::string& path, const RunHeader& header) {
  const bool existed = std::filesystem::exists(path);
  if (std::filesystem::is_directory(path)) {
    return fail(ErrorCode::kBadInput, path + ": a directory, not a run; name a file with -o");
  }
  auto lock = AppendLock::take(path);
  if (!lock) return pass_on(lock);
  return guarded(path, [&]() -> Result<RunStore> {
    auto state = std::make_unique<State>();
    state->path = path;
    state->lock = std::move(*lock);
    state->database =
        std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE, kBusyTimeoutMs);
    SQLite::Database& database = *state->database;
    // A rollback journal, not WAL: the run stays one file that can be copied at any time. FULL
    // keeps every commit through a power cut, not only through a kill.
    database.exec("PRAGMA synchronous = FULL");
    if (is_fresh(database)) create_tables(database, header);
    if (auto format = check_format(database, path); !format) return pass_on(format);
    auto stored = read_header(database, path);
    if (!stored) return pass_on(stored);
    if (const std::string what = difference(*stored, header); existed && !what.empty()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: this file holds another run: {}; choose another output with -o, "
                              "or remove the file to start anew",
                              path, what));
    }
    state->header = std::move(*stored);
    for (const auto& [kind, names] :
         {std::pair{"factor", &state->columns.factors}, {"measure", &state->columns.measures}}) {
      SQLite::Statement rows(database, "SELECT name FROM flat_column WHERE kind = ?");
      rows.bind(1, kind);
      while (rows.executeStep()) names->insert(rows.getColumn(0).getString());
    }
    state->writer = std::make_unique<ObservationWriter>(database);
    return RunStore(std::move(state));
  });
}

Result<RunStore> RunStore::open_to_read(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return fail(ErrorCode::kBadInput, path + ": no such file; `greynic run` makes runs");
  }
  if (std::filesystem::is_directory(path)) {
    return fail(ErrorCode::kBadInput, path + ": a directory, not a run");
  }
  return guarded(path, [&]() -> Result<RunStore> {
    auto state = std::make_unique<State>();
    state->path = path;
    state->database =
        std::make_unique<SQLite::Database>(path, SQLite::OPEN_READONLY, kBusyTimeoutMs);
    if (is_fresh(*state->database)) {
      return fail(ErrorCode::kBadInput, path + ": an empty file, not a run");
    }
    if (auto format = check_format(*state->database, path); !format) return pass_on(format);
    auto header = read_header(*state->database, path);
    if (!header) return pass_on(header);
    state->header = std::move(*header);
    return RunStore(std::move(state));
  });
}

const RunHeader& RunStore::header() const { return state_->header; }

Result<Campaign> RunStore::campaign() const {
  if (state_->header.campaign_text.empty()) {
    return fail(ErrorCode::kBadInput,
                state_->path + ": holds no campaign (it was imported, or run from a plan)");
  }
  auto campaign = files::parse_campaign(state_->header.campaign_text,
                                        state_->path + " (the campaign kept in it)");
  if (!campaign) return campaign;
  const auto topology = state_->header.environment.find(kTopologyFile);
  if (topology != state_->header.environment.end()) campaign->topology = topology->second;
  std::vector<std::string> overrides;
  for (const auto& [name, value] : state_->header.settings) {
    if (name.starts_with("set.")) overrides.push_back(name.substr(4) + "=" + value);
  }
  return files::override_levels(std::move(*campaign), overrides);
}

Result<void> RunStore::append(const Observation& observation) {
  return append_all(std::span(&observation, 1));
}

Result<void> RunStore::append_all(std::span<const Observation> observations) {
  if (!state_->writer) {
    return fail(ErrorCode::kInternal, state_->path + ": opened for reading, but appended to");
  }
  for (const Observation& observation : observations) {
    if (auto storable = check_storable(observation); !storable) return storable;
  }
  try {
    SQLite::Transaction transaction(*state_->database, SQLite::TransactionBehavior::IMMEDIATE);
    FlatColumns columns = state_->columns;
    bool new_columns = false;
    for (const Observation& observation : observations) {
      state_->writer->write(observation);
      new_columns |= add_columns(columns, observation);
    }
    if (new_columns) {
      SQLite::Statement insert(*state_->database,
                               "INSERT OR IGNORE INTO flat_column VALUES (?, ?)");
      for (const auto& [kind, names] :
           {std::pair{"factor", &columns.factors}, {"measure", &columns.measures}}) {
        for (const std::string& name : *names) {
          insert.reset();
          insert.bind(1, kind);
          insert.bind(2, name);
          insert.exec();
        }
      }
      state_->database->exec(create_flat_view(columns));
    }
    transaction.commit();
    state_->columns = std::move(columns);
    return {};
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() == SQLITE_CONSTRAINT) {
      return fail(ErrorCode::kInternal, fmt::format("{}: an observation would be stored twice: {}",
                                                    state_->path, error.what()));
    }
    return fail(ErrorCode::kIo, fmt::format("{}: {}", state_->path, error.what()));
  }
}

Result<std::set<ObservationKey>> RunStore::keys() const {
  return guarded(state_->path, [&]() -> Result<std::set<ObservationKey>> {
    std::set<ObservationKey> keys;
    SQLite::Statement rows(*state_->database, "SELECT configuration, repeat FROM observation");
    while (rows.executeStep()) {
      keys.emplace(rows.getColumn(0).getString(), rows.getColumn(1).getInt());
    }
    return keys;
  });
}

Result<std::vector<Observation>> RunStore::observations() const {
  return guarded(state_->path, [&]() -> Result<std::vector<Observation>> {
    // One transaction, so that measures belong to the observations read even while a run goes on.
    SQLite::Transaction snapshot(*state_->database);
    return read_observations(*state_->database, state_->path);
  });
}

Result<void> RunStore::keep(const std::string& kind, const std::string& json_text) {
  return guarded(state_->path, [&]() -> Result<void> {
    std::unique_ptr<SQLite::Database> own;
    if (!state_->writer) {
      own =
          std::make_unique<SQLite::Database>(state_->path, SQLite::OPEN_READWRITE, kBusyTimeoutMs);
    }
    SQLite::Database& database = own ? *own : *state_->database;
    SQLite::Statement put(database,
                          "INSERT OR REPLACE INTO document VALUES (?, ?, datetime('now'))");
    put.bind(1, kind);
    put.bind(2, json_text);
    put.exec();
    return {};
  });
}

Result<std::string> RunStore::kept(const std::string& kind) const {
  return guarded(state_->path, [&]() -> Result<std::string> {
    SQLite::Statement row(*state_->database, "SELECT json FROM document WHERE kind = ?");
    row.bind(1, kind);
    return row.executeStep() ? row.getColumn(0).getString() : std::string();
  });
}

Result<std::string> RunStore::best_explanation() const {
  auto tested = kept(kExplanation);
  return tested && tested->empty() ? kept(kHypotheses) : tested;
}

Result<std::map<std::string, std::string>> RunStore::documents() const {
  return guarded(state_->path, [&]() -> Result<std::map<std::string, std::string>> {
    return get_pairs(*state_->database, "SELECT kind, json FROM document");
  });
}

}  // namespace greynic::results
