#include "greynic/results/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "greynic/core/text.h"
#include "greynic/files/campaign_file.h"
#include "greynic/files/output_file.h"
#include "store/checksum.h"
#include "store/database.h"
#include "store/header_rows.h"
#include "store/observation_rows.h"
#include "store/run_schema.h"

namespace greynic::results {
namespace {

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
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
      return fail(ErrorCode::kBadInput, path +
                                            ": is no regular file, and a run must be one; name "
                                            "another file with -o");
    }
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
  for (const auto& [counter, samples] : observation.counter_samples) {
    for (const CounterSample& sample : samples) {
      if (!std::isfinite(sample.value)) {
        return fail(ErrorCode::kInternal, fmt::format("{}: {} is not finite", name, counter));
      }
    }
  }
  return {};
}

/// Does `work`; when the run turns out to be damaged, the error says which observations are lost.
template <typename Work>
auto with_losses(SQLite::Database& database, const std::string& path, Work work)
    -> decltype(work()) {
  auto done = guarded(path, work);
  if (done || done.error().code != ErrorCode::kBadInput) return done;
  const std::string lost = lost_observations(database, path);
  if (lost.empty()) return done;
  return fail(ErrorCode::kBadInput,
              fmt::format("{}\n{}; restore a copy of the file, or remove it and measure again",
                          done.error().message, lost));
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

/// The rest of a run that is appended to, once its database is open.
Result<RunStore> RunStore::ready(std::unique_ptr<State> state, const RunHeader& header) {
  SQLite::Database& database = *state->database;
  const bool fresh = is_fresh(database);
  if (fresh) create_tables(database, header);
  if (auto format = check_format(database, state->path); !format) return pass_on(format);
  auto stored = read_header(database, state->path);
  if (!stored) return pass_on(stored);
  if (const std::string what = difference(*stored, header); !fresh && !what.empty()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: this file holds another run: {}; choose another output with -o, "
                            "or remove the file to start anew",
                            state->path, printable(what)));
  }
  state->header = std::move(*stored);
  if (auto sound = check_soundness(*state); !sound) return pass_on(sound);
  for (const auto& [kind, names] :
       {std::pair{"factor", &state->columns.factors}, {"measure", &state->columns.measures}}) {
    SQLite::Statement rows(database, "SELECT name FROM flat_column WHERE kind = ?");
    rows.bind(1, kind);
    while (rows.executeStep()) names->insert(rows.getColumn(0).getString());
  }
  state->writer = std::make_unique<ObservationWriter>(database);
  return RunStore(std::move(state));
}

/// What a run goes on from must be whole: observations that were lost would be taken for measured,
/// or measured twice. Runs without checksums get one for the header; what they hold is believed.
Result<void> RunStore::check_soundness(State& state) {
  SQLite::Database& database = *state.database;
  const std::string verdict = database.execAndGet("PRAGMA integrity_check(1)").getString();
  if (verdict != "ok") throw SQLite::Exception(verdict, SQLITE_CORRUPT);
  keep_header_checksum(database, state.header);
  if (auto same = check_header(database, state.path, state.header); !same) return same;
  auto read =
      with_losses(database, state.path, [&] { return read_observations(database, state.path); });
  return read ? Result<void>() : pass_on(read);
}

Result<RunStore> RunStore::open_to_append(const std::string& path, const RunHeader& header) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::kBadInput, path + ": a directory, not a run; name a file with -o");
  }
  auto lock = AppendLock::take(path);
  if (!lock) return pass_on(lock);
  auto state = std::make_unique<State>();
  state->path = path;
  state->lock = std::move(*lock);
  return guarded(path, [&]() -> Result<RunStore> {
    state->database =
        std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE, kBusyTimeoutMs);
    // A rollback journal, not WAL: the run stays one file that can be copied at any time. FULL
    // keeps every commit through a power cut, not only through a kill.
    state->database->exec("PRAGMA synchronous = FULL");
    return ready(std::move(state), header);
  });
}

Result<RunStore> RunStore::create_in_memory(const RunHeader& header) {
  auto state = std::make_unique<State>();
  state->path = "the new run";
  return guarded(state->path, [&]() -> Result<RunStore> {
    state->database = std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE);
    return ready(std::move(state), header);
  });
}

Result<void> RunStore::save_as(const std::string& path) const {
  sqlite3_int64 bytes = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> whole(
      sqlite3_serialize(state_->database->getHandle(), "main", &bytes, 0), &sqlite3_free);
  if (!whole) return fail(ErrorCode::kTooBig, path + ": the run does not fit into memory");
  return files::write_text(
      path, {reinterpret_cast<const char*>(whole.get()), static_cast<std::size_t>(bytes)});
}

Result<bool> RunStore::is_blank(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  return guarded(path, [&]() -> Result<bool> {
    const bool fresh = is_fresh(*open_for_reading(path));  // takes back what its writer had begun
    return fresh && std::filesystem::file_size(path) == 0;
  });
}

Result<RunStore> RunStore::open_to_read(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}: {}; `greynic run` makes runs", path,
                    error && error != std::errc::no_such_file_or_directory ? error.message()
                                                                           : "no such file"));
  }
  if (std::filesystem::is_directory(status)) {
    return fail(ErrorCode::kBadInput, path + ": a directory, not a run");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return fail(ErrorCode::kBadInput, path + ": no regular file, so no run; name a run file");
  }
  return guarded(path, [&]() -> Result<RunStore> {
    auto state = std::make_unique<State>();
    state->path = path;
    state->database = open_for_reading(path);
    if (is_fresh(*state->database)) {
      return fail(ErrorCode::kBadInput, path + ": an empty file, not a run");
    }
    if (auto format = check_format(*state->database, path); !format) return pass_on(format);
    auto header = read_header(*state->database, path);
    if (!header) return pass_on(header);
    if (auto same = check_header(*state->database, path, *header); !same) return pass_on(same);
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
    return fail(ErrorCode::kIo, fmt::format("{}: {}", state_->path, printable(error.what())));
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
    return with_losses(*state_->database, state_->path,
                       [&] { return read_observations(*state_->database, state_->path); });
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
