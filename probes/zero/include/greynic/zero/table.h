#pragma once

/// What an arena says that it holds (docs/formats/arena.md). Its bytes come from a program that may
/// be wrong or hostile: everything is checked here, and what comes out may be used as it is. A
/// message names the row or the schema and what is wrong with it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic_zero.h"
#include "greynic_zero_format.h"

namespace greynic::zero {

inline constexpr std::uint64_t kMostSeries = 4 << 20;        ///< of one arena
inline constexpr std::uint64_t kMostValueBytes = 256 << 20;  ///< that one look reads

struct Field {
  std::string name, unit, help, labels;
  zero_type type = ZERO_U64;
  zero_kind kind = ZERO_COUNTER;
  std::uint32_t offset = 0;
  std::uint32_t count = 1;
  std::uint32_t parameter = 0;
};

struct Schema {
  std::string name, help;
  std::vector<Field> fields;
  std::uint32_t struct_bytes = 0;
  zero_layout layout = ZERO_PLAIN;
};

struct Row {
  std::uint32_t index = 0;
  std::uint64_t generation = 0;
  std::uint64_t instance = 0;
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  bool in_owner = false;
  bool ended = false;
  std::uint64_t begun_ns = 0, ended_ns = 0;
  std::string labels;
  std::shared_ptr<const Schema> schema;
};

/// kBadInput for what is no header of this kind, or of a version of tomorrow.
[[nodiscard]] Result<zero_header> parse_header(std::span<const std::byte> bytes,
                                               std::uint32_t kind);

/// Schemas by their offset; those that were read before are not read again.
class Schemas {
 public:
  /// `area` is the schemas of the arena, as far as they are used.
  [[nodiscard]] Result<std::shared_ptr<const Schema>> at(std::span<const std::byte> area,
                                                         std::uint64_t offset);

 private:
  std::map<std::uint64_t, std::shared_ptr<const Schema>> known_;
  std::uint64_t bytes_ = 0;
};

/// All rows that are whole, sorted by place. Rows that were changing while they were copied are
/// left out. kBadInput: overlaps, places outside the arena, schemas that do not fit.
[[nodiscard]] Result<std::vector<Row>> parse_rows(const zero_header& header,
                                                  std::span<const std::byte> rows,
                                                  std::span<const std::byte> schema_area,
                                                  Schemas& schemas);

/// Text from a table that goes to terminals and files: valid UTF-8 without control characters.
[[nodiscard]] bool is_plain_text(std::string_view text);
[[nodiscard]] bool is_metric_name(std::string_view text);
/// key="value",...
[[nodiscard]] bool is_label_list(std::string_view text);
[[nodiscard]] std::uint32_t bytes_of(zero_type type);

}  // namespace greynic::zero
