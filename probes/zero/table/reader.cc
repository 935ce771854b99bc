#include "greynic/zero/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_map>

namespace greynic::zero {
namespace {

constexpr int kTries = 64;
constexpr int kMostTorn = 4096;
constexpr std::size_t kMovingLine = 2 * ZERO_LINE;  // of the header

std::span<std::byte> whole_of(zero_header& header) {
  return {reinterpret_cast<std::byte*>(&header), sizeof header};
}

/// A run of rows that one READ copies.
struct Run {
  std::uint64_t begin = 0, end = 0;
  std::size_t at = 0;  ///< in the copy
};

}  // namespace

struct ArenaReader::State {
  std::unique_ptr<Source> source;
  zero_header header{};
  Schemas schemas;
  std::vector<Row> rows;
  std::unordered_map<std::uint32_t, std::uint64_t> generations;  ///< by row, the last one seen
  std::set<std::uint64_t> told_ended;                            ///< instances

  // How to read the rows, made when they change.
  std::vector<Run> runs;
  std::vector<std::size_t> place;  ///< of each row, in the copy
  std::vector<std::byte> copy;
  std::vector<std::size_t> whole;        ///< rows with versions
  std::vector<std::uint64_t> versions;   ///< of their first lines, read again
  std::vector<std::byte> unpacked;       ///< structures without versions
  std::vector<std::size_t> unpacked_at;  ///< of each row of `whole`
  zero_header after{};
  std::vector<Piece> pieces;
  std::vector<Reading> readings;
  std::uint64_t torn = 0, given_up = 0;

  Result<void> read_header(zero_header& into) {
    const Piece piece{false, 0, whole_of(into)};
    return source->read(std::span(&piece, 1));
  }
  Result<void> accept(const zero_header& now);
  Result<void> read_table();
  Result<void> take_rows(const zero_header& now, std::span<const std::byte> raw,
                         std::span<const std::byte> schema_area);
  void plan();
  Result<void> untear(std::size_t row, std::size_t which, std::uint64_t& version);
  bool unpack(std::size_t which, std::uint64_t& version);
  Result<bool> copy_values();
  Result<void> collect();
};

/// The header as it is now must be of the arena that was opened.
Result<void> ArenaReader::State::accept(const zero_header& now) {
  auto good = parse_header({reinterpret_cast<const std::byte*>(&now), sizeof now}, ZERO_KIND_ARENA);
  if (!good) return pass_on(good);
  if (header.incarnation != 0 && std::memcmp(&now, &header, kMovingLine) != 0) {
    return fail(ErrorCode::kRefused, "the arena has another owner now; it was started anew");
  }
  if (now.epoch < header.epoch) {
    return fail(ErrorCode::kBadInput,
                fmt::format("this is no arena of metrics: its epoch went back "
                            "from {} to {}",
                            header.epoch, now.epoch));
  }
  return {};
}

Result<void> ArenaReader::State::take_rows(const zero_header& now, std::span<const std::byte> raw,
                                           std::span<const std::byte> schema_area) {
  auto parsed = parse_rows(now, raw, schema_area, schemas);
  if (!parsed) return pass_on(parsed);
  for (const Row& row : *parsed) {
    std::uint64_t& last = generations[row.index];
    if (row.generation < last) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("this is no arena of metrics: row {}: its generation went back from "
                              "{} to {}",
                              row.index, last, row.generation));
    }
    last = row.generation;
  }
  rows = std::move(*parsed);
  header = now;
  return {};
}

/// Reads the table until it stands still. An owner that died in the middle of a change leaves an
/// odd epoch that never moves: then the rows that are whole are the table.
Result<void> ArenaReader::State::read_table() {
  std::vector<std::byte> raw, schema_area;
  for (int attempt = 1; attempt <= kTries; ++attempt) {
    zero_header first{}, last{};
    if (auto got = read_header(first); !got) return got;
    if (auto good = accept(first); !good) return good;
    raw.resize(first.row_count * sizeof(zero_row));
    schema_area.resize(first.schemas_used);
    const Piece table[] = {{false, first.rows_offset, raw},
                           {false, first.schemas_offset, schema_area},
                           {false, 0, whole_of(last)}};
    if (auto got = source->read(table); !got) return got;
    const bool still = last.epoch == first.epoch;
    if (still && (first.epoch % 2 == 0 || attempt == kTries)) {
      return take_rows(first, raw, schema_area);
    }
    if (attempt > 4) std::this_thread::yield();
  }
  return fail(ErrorCode::kRefused,
              fmt::format("the table was changing at each of {} reads; read less often or change "
                          "it less often",
                          kTries));
}

void ArenaReader::State::plan() {
  runs.clear();
  whole.clear();
  place.assign(rows.size(), 0);
  std::size_t used = 0;
  const std::uint64_t gap = source->gap_bytes();
  bool run_in_owner = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.in_owner && !source->reads_owner()) continue;
    const std::uint64_t end = row.offset + (row.size + 7U) / 8 * 8;
    // Memory between two structures of the owner may not be there.
    const bool joins = !runs.empty() && !row.in_owner && !run_in_owner &&
                       row.offset >= runs.back().end && row.offset - runs.back().end <= gap;
    if (!joins) {
      runs.push_back({row.offset, end, used});
      run_in_owner = row.in_owner;
    }
    place[i] = runs.back().at + (row.offset - runs.back().begin);
    runs.back().end = end;
    used = runs.back().at + (end - runs.back().begin);
    if (row.schema->layout == ZERO_WHOLE) whole.push_back(i);
  }
  copy.resize(used);
  versions.assign(whole.size(), 0);
  unpacked_at.assign(whole.size(), 0);
  std::size_t flat = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    unpacked_at[i] = flat;
    flat += rows[whole[i]].size / ZERO_LINE * 56;
  }
  unpacked.resize(flat);
  pieces.clear();
  // Rows are sorted: those in the arena come first.
  std::size_t row = 0;
  for (const Run& run : runs) {
    while (rows[row].offset != run.begin || place[row] != run.at) ++row;
    pieces.push_back(
        {rows[row].in_owner, run.begin, std::span(copy).subspan(run.at, run.end - run.begin)});
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    pieces.push_back(
        {false, rows[whole[i]].offset, std::as_writable_bytes(std::span(versions).subspan(i, 1))});
  }
  pieces.push_back({false, 0, whole_of(after)});
}

/// Takes the versions out of a structure; false when it was being written.
bool ArenaReader::State::unpack(std::size_t which, std::uint64_t& version) {
  const Row& row = rows[whole[which]];
  const std::byte* from = copy.data() + place[whole[which]];
  std::byte* to = unpacked.data() + unpacked_at[which];
  std::memcpy(&version, from, sizeof version);
  if (version % 2 != 0 || versions[which] != version) return false;
  for (std::uint32_t line = 0; line < row.size / ZERO_LINE; ++line) {
    std::uint64_t own = 0;
    std::memcpy(&own, from, sizeof own);
    if (own != version) return false;
    std::memcpy(to, from + sizeof own, 56);
    from += ZERO_LINE;
    to += 56;
  }
  return true;
}

/// Copies all values. False: the table has moved meanwhile.
Result<bool> ArenaReader::State::copy_values() {
  if (auto got = source->read(pieces); !got) return pass_on(got);
  if (auto good = accept(after); !good) return pass_on(good);
  const bool same = after.epoch == header.epoch;
  if (same) header = after;  // the heartbeat moves
  return same;
}

/// Copies a structure until it is whole. An owner that died while it wrote leaves a version that
/// stays odd; one that writes without end is left alone after a while.
Result<void> ArenaReader::State::untear(std::size_t row, std::size_t which,
                                        std::uint64_t& version) {
  std::uint64_t moved_from = 0;
  for (int tries = 0, still = 0; !unpack(which, version); ++tries) {
    ++torn;
    still = version == moved_from ? still + 1 : 0;
    moved_from = version;
    if (still == kTries || tries == kMostTorn) {
      ++given_up;
      version = 1;
      return {};
    }
    if (tries > 8) std::this_thread::yield();
    const Piece again[] = {
        {false, rows[row].offset, std::span(copy).subspan(place[row], rows[row].size)},
        {false, rows[row].offset, std::as_writable_bytes(std::span(versions).subspan(which, 1))}};
    if (auto got = source->read(again); !got) return got;
  }
  return {};
}

/// What the copy holds, row by row.
Result<void> ArenaReader::State::collect() {
  readings.clear();
  std::size_t next_whole = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool is_whole = row.schema->layout == ZERO_WHOLE;
    const std::size_t which = is_whole ? next_whole++ : 0;
    if ((row.in_owner && (!source->reads_owner() || row.ended)) ||
        (row.ended && told_ended.contains(row.instance))) {
      continue;
    }
    Reading reading{&row, std::span(copy).subspan(place[i], row.schema->struct_bytes), 0};
    if (is_whole) {
      if (auto done = untear(i, which, reading.version); !done) return done;
      if (reading.version % 2 != 0) continue;
      reading.bytes = std::span(unpacked).subspan(unpacked_at[which], row.schema->struct_bytes);
    }
    readings.push_back(reading);
  }
  return {};
}

ArenaReader::ArenaReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArenaReader::ArenaReader(ArenaReader&&) noexcept = default;
ArenaReader& ArenaReader::operator=(ArenaReader&&) noexcept = default;
ArenaReader::~ArenaReader() = default;

Result<ArenaReader> ArenaReader::open(std::unique_ptr<Source> source) {
  auto state = std::make_unique<State>();
  state->source = std::move(source);
  if (auto got = state->read_table(); !got) return pass_on(got);
  state->plan();
  return ArenaReader(std::move(state));
}

Result<std::span<const Reading>> ArenaReader::look() {
  State& s = *state_;
  for (int attempt = 1;; ++attempt) {
    auto stood_still = s.copy_values();
    if (!stood_still) return pass_on(stood_still);
    if (*stood_still) break;
    if (attempt == kTries) {
      return fail(ErrorCode::kRefused,
                  fmt::format("the table was changing at each of {} reads; read less often or "
                              "change it less often",
                              kTries));
    }
    if (auto got = s.read_table(); !got) return pass_on(got);
    s.plan();
  }
  if (auto done = s.collect(); !done) return pass_on(done);
  for (const Reading& reading : s.readings) {
    if (reading.row->ended) s.told_ended.insert(reading.row->instance);
  }
  return std::span<const Reading>(s.readings);
}

const zero_header& ArenaReader::header() const { return state_->header; }
std::span<const Row> ArenaReader::rows() const { return state_->rows; }
std::size_t ArenaReader::run_count() const { return state_->runs.size(); }
std::size_t ArenaReader::look_bytes() const {
  return state_->copy.size() + state_->versions.size() * 8 + sizeof(zero_header);
}
std::uint64_t ArenaReader::torn() const { return state_->torn; }
std::uint64_t ArenaReader::given_up() const { return state_->given_up; }

bool is_floating(zero_type type) { return type == ZERO_F64 || type == ZERO_F32; }

std::uint64_t bits_of(const Field& field, std::span<const std::byte> structure,
                      std::uint32_t index) {
  const std::uint32_t bytes = zero::bytes_of(field.type);
  std::uint64_t word = 0;
  std::memcpy(&word, structure.data() + field.offset + std::size_t{index} * bytes, bytes);
  if (field.type == ZERO_I32) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(word)});
  }
  if (field.type == ZERO_F32) {
    return std::bit_cast<std::uint64_t>(
        double{std::bit_cast<float>(static_cast<std::uint32_t>(word))});
  }
  return word;
}

double number_of(const Field& field, std::span<const std::byte> structure, std::uint32_t index) {
  const std::uint64_t bits = bits_of(field, structure, index);
  if (is_floating(field.type)) return std::bit_cast<double>(bits);
  if (field.type == ZERO_I64 || field.type == ZERO_I32) {
    return static_cast<double>(static_cast<std::int64_t>(bits));
  }
  return static_cast<double>(bits);
}

Series series_of(const Row& row, const Field& field, std::uint32_t index) {
  Series series{row.schema->fields.size() == 1 && row.schema->name == field.name
                    ? field.name
                    : row.schema->name + "_" + field.name,
                row.labels};
  const auto add = [&](const std::string& labels) {
    if (!series.labels.empty() && !labels.empty()) series.labels += ',';
    series.labels += labels;
  };
  add(field.labels);
  if (field.count > 1 && field.kind != ZERO_HISTOGRAM) add(fmt::format("index=\"{}\"", index));
  return series;
}

}  // namespace greynic::zero
