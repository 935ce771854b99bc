#include "store/observation_rows.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "greynic/core/text.h"
#include "greynic/files/core_json.h"
#include "greynic/files/histogram_json.h"
#include "greynic/files/json_file.h"
#include "store/checksum.h"
#include "store/run_schema.h"

namespace greynic::results {
namespace {

void bind_optional(SQLite::Statement& statement, int index, const std::optional<double>& value) {
  if (value) {
    statement.bind(index, *value);
  } else {
    statement.bind(index);
  }
}

std::optional<double> find_counter(const std::map<std::string, double>& counters,
                                   const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint64_t> parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

/// Where a row is, for messages.
std::string place(const std::string& path, std::int64_t id) {
  return fmt::format("{}: observation {}", path, id);
}

Result<Configuration> read_configuration(const std::string& text, const std::string& source,
                                         const std::string& column) {
  auto json = files::parse_json(text, source + ", column " + column);
  if (!json) return pass_on(json);
  return files::configuration_from_json(*json, source, "/" + column);
}

Result<LatencyHistogram> read_histogram(const std::string& text, const std::string& source) {
  auto json = files::parse_json(text, source + ", column latency_ns_buckets");
  if (!json) return pass_on(json);
  return files::histogram_from_json(*json, source, "/latency_ns_buckets");
}

Result<std::vector<CounterSample>> read_samples(const std::string& text,
                                                const std::string& source) {
  auto json = files::parse_json(text, source + ", its samples of a counter");
  if (!json) return pass_on(json);
  std::vector<CounterSample> samples;
  const bool is_list = json->is_array();
  for (const auto& sample : is_list ? *json : nlohmann::json::array({nullptr})) {
    if (!sample.is_array() || sample.size() != 2 || !sample[0].is_number_integer() ||
        !sample[1].is_number()) {
      return files::bad_value(source, "/counter_samples", "must be a list of [nanoseconds, value]");
    }
    samples.push_back({sample[0].get<std::int64_t>(), sample[1].get<double>()});
  }
  return samples;
}

Result<std::map<std::string, std::string>> read_environment(const std::string& text,
                                                            const std::string& source) {
  auto json = files::parse_json(text, source + ", its environment");
  if (!json) return pass_on(json);
  std::map<std::string, std::string> environment;
  if (!json->is_object()) return files::bad_value(source, "/environment", "must be an object");
  for (const auto& [name, value] : json->items()) {
    if (!value.is_string()) {
      return files::bad_value(source, "/environment/" + name, "must be text");
    }
    environment[name] = value.get<std::string>();
  }
  return environment;
}

enum Column {
  kId,
  kRepeat,
  kOutcome,
  kReason,
  kAsked,
  kGranted,
  kSeed,
  kElapsed,
  kSettled,
  kWarmup,
  kTest,
  kBuckets,
  kEnvironment
};

constexpr const char* kSelectObservations =
    "SELECT o.id, o.repeat, o.outcome, o.reason, o.asked, o.granted, o.seed, o.elapsed_seconds,"
    " o.steady_settled, o.steady_warmup_share, o.steady_test, o.latency_ns_buckets, e.json"
    " FROM observation AS o JOIN environment AS e ON e.id = o.environment";

Result<Observation> read_row(SQLite::Statement& row, const std::string& path) {
  const std::string source = place(path, row.getColumn(kId).getInt64());
  Observation observation;
  observation.repeat = row.getColumn(kRepeat).getInt();
  const auto outcome = outcome_named(row.getColumn(kOutcome).getString());
  if (!outcome) {
    return files::bad_value(source, "/outcome",
                            "unknown outcome \"" + row.getColumn(kOutcome).getString() + '"');
  }
  observation.outcome = *outcome;
  observation.reason = row.getColumn(kReason).getString();
  auto asked = read_configuration(row.getColumn(kAsked).getString(), source, "asked");
  if (!asked) return pass_on(asked);
  observation.asked = std::move(*asked);
  auto granted = read_configuration(row.getColumn(kGranted).getString(), source, "granted");
  if (!granted) return pass_on(granted);
  observation.granted = std::move(*granted);
  const auto seed = parse_seed(row.getColumn(kSeed).getString());
  if (!seed) return files::bad_value(source, "/seed", "must be a whole number");
  observation.seed = *seed;
  observation.elapsed_seconds = row.getColumn(kElapsed).getDouble();
  if (!row.getColumn(kSettled).isNull()) {
    observation.steady = SteadyState{.settled = row.getColumn(kSettled).getInt() != 0,
                                     .warmup_share = row.getColumn(kWarmup).getDouble(),
                                     .test = row.getColumn(kTest).getString()};
  }
  if (!row.getColumn(kBuckets).isNull()) {
    auto histogram = read_histogram(row.getColumn(kBuckets).getString(), source);
    if (!histogram) return pass_on(histogram);
    observation.latency = std::move(*histogram);
  }
  auto environment = read_environment(row.getColumn(kEnvironment).getString(), source);
  if (!environment) return pass_on(environment);
  observation.environment = std::move(*environment);
  return observation;
}

}  // namespace

ObservationWriter::ObservationWriter(SQLite::Database& database)
    : insert_observation_(database,
                          "INSERT INTO observation (configuration, repeat, outcome, reason, asked,"
                          " granted, seed, elapsed_seconds, steady_settled, steady_warmup_share,"
                          " steady_test, latency_ns_buckets, environment)"
                          " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"),
      insert_measure_(database, "INSERT INTO measure VALUES (?,?,?,?)"),
      insert_counter_(database, "INSERT INTO counter VALUES (?,?,?,?)"),
      insert_environment_(database, "INSERT OR IGNORE INTO environment (json) VALUES (?)"),
      find_environment_(database, "SELECT id FROM environment WHERE json = ?"),
      insert_checksum_(database, "INSERT INTO checksum VALUES (?,?)"),
      database_(database) {}

std::int64_t ObservationWriter::environment_id(
    const std::map<std::string, std::string>& environment) {
  const std::string text = files::json_text(environment);
  insert_environment_.reset();
  insert_environment_.bind(1, text);
  insert_environment_.exec();
  find_environment_.reset();
  find_environment_.bind(1, text);
  find_environment_.executeStep();
  const std::int64_t id = find_environment_.getColumn(0).getInt64();
  find_environment_.reset();
  return id;
}

void ObservationWriter::write_counters(std::int64_t id, const Observation& observation) {
  std::set<std::string> names;
  for (const auto& [name, value] : observation.counters_before) names.insert(name);
  for (const auto& [name, value] : observation.counters_after) names.insert(name);
  for (const std::string& name : names) {
    insert_counter_.reset();
    insert_counter_.bind(1, id);
    insert_counter_.bind(2, name);
    bind_optional(insert_counter_, 3, find_counter(observation.counters_before, name));
    bind_optional(insert_counter_, 4, find_counter(observation.counters_after, name));
    insert_counter_.exec();
  }
  if (observation.counter_samples.empty()) return;
  database_.exec(kCreateCounterSamples);  // most runs have none
  SQLite::Statement insert(database_, "INSERT INTO counter_sample VALUES (?,?,?)");
  for (const auto& [name, samples] : observation.counter_samples) {
    nlohmann::json list = nlohmann::json::array();
    for (const CounterSample& sample : samples) list.push_back({sample.time_ns, sample.value});
    insert.reset();
    insert.bind(1, id);
    insert.bind(2, name);
    insert.bind(3, files::json_text(list));
    insert.exec();
  }
}

void ObservationWriter::write(const Observation& observation) {
  SQLite::Statement& row = insert_observation_;
  row.reset();
  row.clearBindings();
  row.bind(1, observation.asked.name());
  row.bind(2, observation.repeat);
  row.bind(3, std::string(to_string(observation.outcome)));
  row.bind(4, observation.reason);
  row.bind(5, files::json_text(files::to_json(observation.asked)));
  row.bind(6, files::json_text(files::to_json(observation.granted)));
  row.bind(7, std::to_string(observation.seed));
  row.bind(8, observation.elapsed_seconds);
  if (observation.steady) {
    row.bind(9, observation.steady->settled ? 1 : 0);
    row.bind(10, observation.steady->warmup_share);
    row.bind(11, observation.steady->test);
  }
  if (!observation.latency.empty()) {
    row.bind(12, files::json_text(observation.latency.buckets()));
  }
  row.bind(13, environment_id(observation.environment));
  row.exec();
  const std::int64_t id = database_.getLastInsertRowid();
  for (const auto& [name, measure] : observation.measures) {
    insert_measure_.reset();
    insert_measure_.bind(1, id);
    insert_measure_.bind(2, name);
    insert_measure_.bind(3, measure.value);
    bind_optional(insert_measure_, 4, measure.standard_error);
    insert_measure_.exec();
  }
  write_counters(id, observation);
  insert_checksum_.reset();
  insert_checksum_.bind(1, std::to_string(id));
  insert_checksum_.bind(2, checksum_of(observation));
  insert_checksum_.exec();
}

namespace {

using Observations = std::map<std::int64_t, Observation>;

/// All observations, or the one with this id, by id.
Result<Observations> read_rows(SQLite::Database& database, const std::string& path,
                               std::optional<std::int64_t> only = std::nullopt) {
  const auto where = [&](const char* column) {
    return only ? fmt::format(" WHERE {} = {}", column, *only) : std::string();
  };
  Observations observations;
  SQLite::Statement rows(database, kSelectObservations + where("o.id"));
  while (rows.executeStep()) {
    auto observation = read_row(rows, path);
    if (!observation) return pass_on(observation);
    observations[rows.getColumn(kId).getInt64()] = std::move(*observation);
  }
  // Rows that no observation owns can only come from other hands; they are none of ours to show.
  SQLite::Statement measures(
      database,
      "SELECT observation, name, value, standard_error FROM measure" + where("observation"));
  while (measures.executeStep()) {
    const auto found = observations.find(measures.getColumn(0).getInt64());
    if (found == observations.end()) continue;
    Measure& measure = found->second.measures[measures.getColumn(1).getString()];
    measure.value = measures.getColumn(2).getDouble();
    if (!measures.getColumn(3).isNull()) measure.standard_error = measures.getColumn(3).getDouble();
  }
  SQLite::Statement counters(
      database, "SELECT observation, name, before, after FROM counter" + where("observation"));
  while (counters.executeStep()) {
    const auto found = observations.find(counters.getColumn(0).getInt64());
    if (found == observations.end()) continue;
    const std::string name = counters.getColumn(1).getString();
    if (!counters.getColumn(2).isNull()) {
      found->second.counters_before[name] = counters.getColumn(2).getDouble();
    }
    if (!counters.getColumn(3).isNull()) {
      found->second.counters_after[name] = counters.getColumn(3).getDouble();
    }
  }
  if (!database.tableExists("counter_sample")) return observations;
  SQLite::Statement samples(
      database, "SELECT observation, name, samples FROM counter_sample" + where("observation"));
  while (samples.executeStep()) {
    const auto found = observations.find(samples.getColumn(0).getInt64());
    if (found == observations.end()) continue;
    auto read = read_samples(samples.getColumn(2).getString(), place(path, found->first));
    if (!read) return pass_on(read);
    found->second.counter_samples[samples.getColumn(1).getString()] = std::move(*read);
  }
  return observations;
}

/// By the id of the observation; empty in runs that were made before there were checksums.
std::map<std::int64_t, std::string> read_checksums(SQLite::Database& database) {
  std::map<std::int64_t, std::string> checksums;
  if (!database.tableExists("checksum")) return checksums;
  SQLite::Statement rows(database, "SELECT of, crc64 FROM checksum WHERE of <> 'header'");
  while (rows.executeStep()) {
    checksums[rows.getColumn(0).getInt64()] = rows.getColumn(1).getString();
  }
  return checksums;
}

bool is_as_written(const Observations& observations, std::int64_t id, const std::string& checksum) {
  const auto found = observations.find(id);
  return found != observations.end() && checksum_of(found->second) == checksum;
}

/// "3, 17 to 20" of ascending numbers.
std::string ranges_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format(" to {}", numbers[last]);
  }
  return text;
}

}  // namespace

std::string lost_observations(SQLite::Database& database, const std::string& path) {
  try {
    const auto checksums = read_checksums(database);
    std::vector<std::int64_t> lost;
    for (const auto& [id, checksum] : checksums) {
      try {
        const auto one = read_rows(database, path, id);
        if (one && is_as_written(*one, id, checksum)) continue;
      } catch (const SQLite::Exception&) {  // these pages are gone; others may be well
      }
      lost.push_back(id);
    }
    if (checksums.empty() || lost.empty()) return {};
    return fmt::format("{} of {} observations are lost: {}", lost.size(), checksums.size(),
                       shortened(ranges_of(lost), 200));
  } catch (const SQLite::Exception&) {
    return {};
  }
}

Result<std::vector<Observation>> read_observations(SQLite::Database& database,
                                                   const std::string& path) {
  auto read = read_rows(database, path);
  if (!read) return pass_on(read);
  const auto checksums = read_checksums(database);
  const auto damaged = std::ranges::find_if(
      checksums, [&](const auto& row) { return !is_as_written(*read, row.first, row.second); });
  if (damaged != checksums.end())
    throw SQLite::Exception("an observation has changed", SQLITE_CORRUPT);
  std::vector<Observation> observations;
  observations.reserve(read->size());
  for (auto& [id, observation] : *read) {
    // Older runs say timed_out where nothing completed in time.
    if (observation.outcome == Outcome::kTimedOut &&
        observation.reason.starts_with("nothing completed within the measured time")) {
      observation.outcome = Outcome::kTooShort;
    }
    observations.push_back(std::move(observation));
  }
  return observations;
}

bool add_columns(FlatColumns& columns, const Observation& observation) {
  bool added = false;
  for (const auto& [factor, level] : observation.asked.levels()) {
    added |= columns.factors.insert(factor).second;
  }
  for (const auto& [name, measure] : observation.measures) {
    added |= columns.measures.insert(name).second;
  }
  return added;
}

}  // namespace greynic::results
