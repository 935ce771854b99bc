#include "greynic/zero/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

namespace greynic::zero {
namespace {

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::kBadInput, fmt::format("this is no arena of metrics: {}", what));
}

/// A range that lies within another, without overflow.
bool inside(std::uint64_t begin, std::uint64_t bytes, std::uint64_t low, std::uint64_t high) {
  return begin >= low && begin <= high && bytes <= high - begin;
}

template <typename T>
T copy_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint64_t check_of(std::span<const std::byte> bytes) {
  std::uint64_t check = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes) {
    check = (check ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return check;
}

/// A text of a schema; nothing when it does not end within it.
std::optional<std::string_view> text_at(std::span<const std::byte> schema, std::uint32_t at) {
  if (at >= schema.size()) return std::nullopt;
  const char* const begin = reinterpret_cast<const char*>(schema.data()) + at;
  const void* const end = std::memchr(begin, 0, schema.size() - at);
  if (end == nullptr) return std::nullopt;
  return std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
}

bool good_shape(const zero_schema_field& field, std::uint32_t struct_bytes) {
  const std::uint32_t bytes = field.type >= ZERO_U64 && field.type <= ZERO_U8
                                  ? bytes_of(static_cast<zero_type>(field.type))
                                  : 0;
  if (bytes == 0 || field.count == 0 || field.offset % bytes != 0 || field.offset > struct_bytes ||
      (struct_bytes - field.offset) / bytes < field.count) {
    return false;
  }
  if (field.kind == ZERO_HISTOGRAM) {
    return field.type == ZERO_U64 && field.parameter <= 8 &&
           field.count == ZERO_HISTOGRAM_WORDS(field.parameter);
  }
  return (field.kind == ZERO_COUNTER || field.kind == ZERO_GAUGE) && field.parameter == 0;
}

/// Why a schema is none; empty: it is one.
std::string parse_schema(std::span<const std::byte> bytes, const zero_schema_head& head,
                         Schema& into) {
  const auto name = text_at(bytes, head.name_at);
  const auto help = text_at(bytes, head.help_at);
  if (!name || !is_metric_name(*name)) return "has no good name";
  if (!help || !is_plain_text(*help)) return "has no good help text";
  into.name = *name;
  into.help = *help;
  into.struct_bytes = head.struct_bytes;
  into.layout = static_cast<zero_layout>(head.layout);
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (std::uint32_t i = 0; i < head.field_count; ++i) {
    const auto raw = copy_at<zero_schema_field>(bytes, sizeof head + i * sizeof(zero_schema_field));
    const auto field_name = text_at(bytes, raw.name_at);
    const auto unit = text_at(bytes, raw.unit_at);
    const auto field_help = text_at(bytes, raw.help_at);
    const auto labels = text_at(bytes, raw.labels_at);
    if (!field_name || !is_metric_name(*field_name) || !unit || unit->size() > 32 ||
        !is_plain_text(*unit) || !field_help || !is_plain_text(*field_help) || !labels ||
        labels->size() > ZERO_MOST_LABEL_BYTES || !is_label_list(*labels)) {
      return fmt::format("field {} has no good name, unit, help or labels", i);
    }
    if (!good_shape(raw, head.struct_bytes)) {
      return fmt::format("field {} does not fit into a structure of {} bytes", *field_name,
                         head.struct_bytes);
    }
    if (!names.insert({*field_name, *labels}).second) {
      return fmt::format("field {} stands twice", *field_name);
    }
    into.fields.push_back({std::string(*field_name), std::string(*unit), std::string(*field_help),
                           std::string(*labels), static_cast<zero_type>(raw.type),
                           static_cast<zero_kind>(raw.kind), raw.offset, raw.count, raw.parameter});
  }
  return {};
}

std::uint64_t series_in(const Schema& schema) {
  std::uint64_t count = 0;
  for (const Field& field : schema.fields) {
    count += field.kind == ZERO_HISTOGRAM ? 1 : field.count;
  }
  return count;
}

/// The generation that all lines of a row have; 0 while it changes, or was never used.
std::uint64_t generation_of(const zero_row& raw) {
  for (const auto& line : raw.label) {
    if (line.generation != raw.generation) return 0;
  }
  return raw.generation % 2 == 0 ? raw.generation : 0;
}

std::string label_text(const zero_row& raw) {
  std::string text;
  for (const auto& line : raw.label) text.append(line.text, sizeof line.text);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

/// Why a row is none; empty: it is one.
std::string parse_row(const zero_header& header, const zero_row& raw, Row& into) {
  if (raw.state != ZERO_ROW_LIVE && raw.state != ZERO_ROW_ENDED) {
    return fmt::format("has the unknown state {}", raw.state);
  }
  if (raw.segment > ZERO_IN_OWNER)
    return fmt::format("lies in the unknown segment {}", raw.segment);
  into.generation = raw.generation;
  into.instance = raw.instance;
  into.offset = raw.offset;
  into.size = raw.size;
  into.in_owner = raw.segment == ZERO_IN_OWNER;
  into.ended = raw.state == ZERO_ROW_ENDED;
  into.begun_ns = raw.begun_ns;
  into.ended_ns = raw.ended_ns;
  into.labels = label_text(raw);
  if (raw.offset % 8 != 0) return fmt::format("begins at {}, no multiple of 8", raw.offset);
  if (!into.in_owner && !inside(raw.offset, raw.size, header.data_offset, header.bytes)) {
    return fmt::format("lies outside the arena: {} bytes at {} of {}", raw.size, raw.offset,
                       header.bytes);
  }
  if (into.in_owner && raw.offset > std::numeric_limits<std::uint64_t>::max() - raw.size) {
    return "lies beyond the end of memory";
  }
  if (!is_label_list(into.labels)) return "has labels that are not key=\"value\",...";
  return {};
}

bool fits(const Row& row) {
  if (row.schema->layout == ZERO_WHOLE) {
    return !row.in_owner && row.offset % ZERO_LINE == 0 &&
           row.size == (std::uint64_t{row.schema->struct_bytes} + 55) / 56 * ZERO_LINE;
  }
  return row.size == row.schema->struct_bytes;
}

/// Sorted rows: none may share a byte with another, nor an instance.
Result<void> check_together(const std::vector<Row>& rows) {
  std::set<std::uint64_t> instances;
  std::uint64_t series = 0;
  std::uint64_t bytes = 0;
  const Row* before = nullptr;
  for (const Row& row : rows) {
    if (!instances.insert(row.instance).second) {
      return malformed(
          fmt::format("row {}: has the instance {} of another", row.index, row.instance));
    }
    if (!row.in_owner && before != nullptr && row.offset < before->offset + before->size) {
      return malformed(fmt::format("rows {} and {} overlap", before->index, row.index));
    }
    if (!row.in_owner) before = &row;
    series += series_in(*row.schema);
    bytes += row.size;
    if (series > kMostSeries || bytes > kMostValueBytes) {
      return fail(ErrorCode::kTooBig,
                  fmt::format("an arena of more than {} series or {} bytes of values is not read",
                              kMostSeries, kMostValueBytes));
    }
  }
  return {};
}

}  // namespace

std::uint32_t bytes_of(zero_type type) {
  constexpr std::array<std::uint32_t, 9> kBytes = {0, 8, 8, 8, 4, 4, 4, 2, 1};
  return kBytes.at(static_cast<std::size_t>(type));
}

Result<zero_header> parse_header(std::span<const std::byte> bytes, std::uint32_t kind) {
  if (bytes.size() < sizeof(zero_header)) return malformed("it is shorter than a header");
  auto header = copy_at<zero_header>(bytes, 0);
  if (std::memcmp(header.magic, ZERO_MAGIC, sizeof header.magic) != 0) {
    return malformed("its first bytes are not " ZERO_MAGIC);
  }
  if (header.version != ZERO_VERSION) {
    return malformed(fmt::format("it has version {}, and this greynic reads version {}",
                                 header.version, static_cast<int>(ZERO_VERSION)));
  }
  const std::uint32_t row_bytes =
      kind == ZERO_KIND_ARENA ? sizeof(zero_row) : sizeof(zero_directory_row);
  if (header.kind != kind) return malformed(fmt::format("it is of kind {}", header.kind));
  if (header.bytes > ZERO_MOST_ARENA_BYTES || header.row_bytes != row_bytes ||
      header.row_capacity > ZERO_MOST_ROWS || header.row_count > header.row_capacity ||
      header.rows_offset % ZERO_LINE != 0 || header.schemas_offset % 8 != 0 ||
      header.schemas_used % 8 != 0 || header.data_offset % ZERO_LINE != 0 ||
      header.metric_class >= ZERO_CLASSES || header.incarnation == 0) {
    return malformed("the sizes in its header do not fit together");
  }
  // In this order, and none over another.
  if (!inside(header.rows_offset, header.row_capacity * row_bytes, sizeof header,
              header.schemas_offset) ||
      !inside(header.schemas_offset, header.schemas_bytes, sizeof header, header.data_offset) ||
      header.schemas_used > header.schemas_bytes || header.data_offset > header.bytes) {
    return malformed("its parts do not lie within it");
  }
  header.name[sizeof header.name - 1] = 0;
  if (!is_plain_text(header.name)) return malformed("its name is no plain text");
  return header;
}

Result<std::shared_ptr<const Schema>> Schemas::at(std::span<const std::byte> area,
                                                  std::uint64_t offset) {
  if (const auto known = known_.find(offset); known != known_.end()) return known->second;
  const auto bad = [&](std::string_view why) {
    return malformed(fmt::format("the schema at {} {}", offset, why));
  };
  if (offset % 8 != 0 || !inside(offset, sizeof(zero_schema_head), 0, area.size())) {
    return bad("lies outside it");
  }
  const auto head = copy_at<zero_schema_head>(area, offset);
  if (!inside(offset, head.bytes, 0, area.size()) || head.bytes % 8 != 0 || head.field_count == 0 ||
      head.field_count > ZERO_MOST_FIELDS || head.layout > ZERO_WHOLE || head.struct_bytes == 0 ||
      head.struct_bytes > ZERO_MOST_STRUCT_BYTES ||
      head.bytes < sizeof head + std::uint64_t{head.field_count} * sizeof(zero_schema_field)) {
    return bad("has sizes that do not fit together");
  }
  const auto bytes = area.subspan(offset, head.bytes);
  if (check_of(bytes.subspan(sizeof head.check)) != head.check) return bad("has a wrong checksum");
  // Schemas lie one behind the other; more bytes than there are must overlap.
  bytes_ += head.bytes;
  if (bytes_ > area.size()) return bad("overlaps another");
  auto schema = std::make_shared<Schema>();
  if (const std::string why = parse_schema(bytes, head, *schema); !why.empty()) return bad(why);
  known_.emplace(offset, schema);
  return std::shared_ptr<const Schema>(std::move(schema));
}

Result<std::vector<Row>> parse_rows(const zero_header& header, std::span<const std::byte> rows,
                                    std::span<const std::byte> schema_area, Schemas& schemas) {
  std::vector<Row> parsed;
  for (std::uint32_t i = 0; (i + 1) * sizeof(zero_row) <= rows.size(); ++i) {
    const auto raw = copy_at<zero_row>(rows, i * sizeof(zero_row));
    if (generation_of(raw) == 0 || raw.state == ZERO_ROW_FREE) continue;
    Row row;
    row.index = i;
    if (const std::string why = parse_row(header, raw, row); !why.empty()) {
      return malformed(fmt::format("row {}: {}", i, why));
    }
    if (raw.schema < header.schemas_offset) {
      return malformed(fmt::format("row {}: its schema lies outside the schemas", i));
    }
    auto schema = schemas.at(schema_area, raw.schema - header.schemas_offset);
    if (!schema) return schema.error().while_doing(fmt::format("row {}", i));
    row.schema = *schema;
    if (!fits(row)) {
      return malformed(fmt::format("row {}: has {} bytes, and its schema {} another size or place",
                                   i, row.size, row.schema->name));
    }
    parsed.push_back(std::move(row));
  }
  std::sort(parsed.begin(), parsed.end(), [](const Row& a, const Row& b) {
    return std::tie(a.in_owner, a.offset) < std::tie(b.in_owner, b.offset);
  });
  if (auto good = check_together(parsed); !good) return pass_on(good);
  return parsed;
}

}  // namespace greynic::zero
