#include "store/run_schema.h"

#include <fmt/core.h>

namespace greynic::results {

const char* const kTableNames =
    "'header', 'setting', 'environment', 'observation', 'measure', 'counter', 'document',"
    " 'flat_column', 'checksum', 'counter_sample'";

const char* const kCreateCounterSamples = R"sql(
CREATE TABLE IF NOT EXISTS counter_sample (
  observation INTEGER NOT NULL REFERENCES observation(id),
  name        TEXT NOT NULL,
  samples     TEXT NOT NULL,
  PRIMARY KEY (observation, name)
) WITHOUT ROWID;
)sql";

const char* const kCreateChecksums = R"sql(
CREATE TABLE IF NOT EXISTS checksum (
  of    TEXT PRIMARY KEY,
  crc64 TEXT NOT NULL
) WITHOUT ROWID;
)sql";

const char* const kCreateTables = R"sql(
CREATE TABLE header (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE setting (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE environment (
  id   INTEGER PRIMARY KEY,
  json TEXT NOT NULL UNIQUE
);

CREATE TABLE observation (
  id                  INTEGER PRIMARY KEY,
  configuration       TEXT NOT NULL,
  repeat              INTEGER NOT NULL,
  outcome             TEXT NOT NULL,
  reason              TEXT NOT NULL,
  asked               TEXT NOT NULL,
  granted             TEXT NOT NULL,
  seed                TEXT NOT NULL,
  elapsed_seconds     REAL NOT NULL,
  steady_settled      INTEGER,
  steady_warmup_share REAL,
  steady_test         TEXT,
  latency_ns_buckets  TEXT,
  environment         INTEGER NOT NULL REFERENCES environment(id),
  UNIQUE (configuration, repeat)
);

CREATE TABLE measure (
  observation    INTEGER NOT NULL REFERENCES observation(id),
  name           TEXT NOT NULL,
  value          REAL NOT NULL,
  standard_error REAL,
  PRIMARY KEY (observation, name)
) WITHOUT ROWID;

CREATE TABLE counter (
  observation INTEGER NOT NULL REFERENCES observation(id),
  name        TEXT NOT NULL,
  before      REAL,
  after       REAL,
  PRIMARY KEY (observation, name)
) WITHOUT ROWID;

CREATE TABLE document (
  kind TEXT PRIMARY KEY,
  json TEXT NOT NULL,
  kept TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE flat_column (
  kind TEXT NOT NULL CHECK (kind IN ('factor', 'measure')),
  name TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE VIEW run AS
  SELECT (SELECT value FROM header WHERE name = 'campaign_name') AS campaign,
         (SELECT value FROM header WHERE name = 'target') AS target,
         (SELECT value FROM header WHERE name = 'seed') AS seed,
         (SELECT count(*) FROM observation) AS observations,
         (SELECT count(DISTINCT configuration) FROM observation) AS configurations,
         (SELECT count(*) FROM observation WHERE outcome <> 'measured') AS not_measured;

CREATE VIEW levels AS
  SELECT o.id AS observation, o.configuration, o.repeat, j.key AS factor, j.type AS type,
         j.value AS level
  FROM observation AS o, json_each(o.asked) AS j;

CREATE VIEW measures AS
  SELECT o.id AS observation, o.configuration, o.repeat, m.name AS measure, m.value,
         m.standard_error
  FROM observation AS o JOIN measure AS m ON m.observation = o.id;

CREATE VIEW counters AS
  SELECT o.id AS observation, o.configuration, o.repeat, c.name AS counter, c.before, c.after,
         c.after - c.before AS difference
  FROM observation AS o JOIN counter AS c ON c.observation = o.id;

CREATE VIEW outcomes AS
  SELECT outcome, reason, count(*) AS observations
  FROM observation GROUP BY outcome, reason ORDER BY observations DESC;
)sql";

namespace {

/// SQLite refuses a view with more than 2000 columns.
constexpr std::size_t kMostColumns = 1900;

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string identifier(const std::string& name) {
  return '"' + replace_all(name, "\"", "\"\"") + '"';
}

std::string literal(const std::string& text) { return '\'' + replace_all(text, "'", "''") + '\''; }

}  // namespace

std::string create_flat_view(const FlatColumns& columns) {
  // Two columns of one name would make the view ambiguous, so a measure that is called like a
  // factor or like a fixed column stays in the view `measures` alone, as does what is beyond
  // SQLite's limit.
  std::set<std::string> taken = {"id", "repeat", "outcome", "reason"};
  std::string select;
  for (const std::string& factor : columns.factors) {
    if (taken.size() >= kMostColumns || !taken.insert(factor).second) continue;
    select += fmt::format(
        ",\n         (SELECT j.value FROM json_each(o.asked) AS j WHERE j.key = {}) AS {}",
        literal(factor), identifier(factor));
  }
  for (const std::string& measure : columns.measures) {
    if (taken.size() >= kMostColumns || !taken.insert(measure).second) continue;
    select += fmt::format(
        ",\n         (SELECT m.value FROM measure AS m WHERE m.observation = o.id AND m.name = {}) "
        "AS {}",
        literal(measure), identifier(measure));
  }
  return fmt::format(
      "DROP VIEW IF EXISTS flat;\n"
      "CREATE VIEW flat AS\n  SELECT o.id, o.repeat, o.outcome, o.reason{}\n"
      "  FROM observation AS o;",
      select);
}

}  // namespace greynic::results
