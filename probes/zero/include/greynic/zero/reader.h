#pragma once

/// Reads an arena through a Source: finds its table by itself, reads the values of all rows in few
/// READs, and never takes torn for whole, old for new, or restarted for alive.
///
/// How: each look copies the values, then the versions of whole structures once more, then the
/// header, in this order. An epoch that is still that of the table proves that the values lie where
/// the table says. Else the table is read anew, and of the old copy only rows count whose
/// generation has not moved.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/zero/source.h"
#include "greynic/zero/table.h"

namespace greynic::zero {

struct Reading {
  const Row* row = nullptr;
  std::span<const std::byte> bytes;  ///< the structure, without versions
  std::uint64_t version = 0;         ///< of a whole structure; 0: never written, or a plain one
};

class ArenaReader {
 public:
  /// kBadInput when the arena is malformed.
  [[nodiscard]] static Result<ArenaReader> open(std::unique_ptr<Source> source);
  ArenaReader(ArenaReader&&) noexcept;
  ArenaReader& operator=(ArenaReader&&) noexcept;
  ~ArenaReader();

  /// Reads all values. What it gives stays until the next look. A row that has ended comes once
  /// more, with its last values, and then no more. kRefused when the arena has another owner than
  /// at first; kBadInput when its table is malformed now; kIo when it cannot be read.
  [[nodiscard]] Result<std::span<const Reading>> look();

  [[nodiscard]] const zero_header& header() const;
  [[nodiscard]] std::span<const Row> rows() const;
  /// READs of values that one look takes: runs of rows with small gaps between them.
  [[nodiscard]] std::size_t run_count() const;
  /// Bytes that one look copies.
  [[nodiscard]] std::size_t look_bytes() const;
  /// Copies of whole structures that met their writer and were made again, and those that were
  /// given up in a look (their row is missing in it).
  [[nodiscard]] std::uint64_t torn() const;
  [[nodiscard]] std::uint64_t given_up() const;

 private:
  struct State;
  explicit ArenaReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A value of a field as a number; `index` of an array or a histogram. Integers of 64 bits lose
/// what a double does not hold.
[[nodiscard]] double number_of(const Field& field, std::span<const std::byte> structure,
                               std::uint32_t index = 0);
/// The same in 64 bits: integers as they are (signed ones extended), floating point as a double's
/// bits.
[[nodiscard]] std::uint64_t bits_of(const Field& field, std::span<const std::byte> structure,
                                    std::uint32_t index = 0);
[[nodiscard]] bool is_floating(zero_type type);

/// Names of the series of a row: one for each value of each field, but a histogram is one. Labels
/// of row and field come together, then `index` of an array.
struct Series {
  std::string name;    ///< schema_field
  std::string labels;  ///< key="value",...
};
[[nodiscard]] Series series_of(const Row& row, const Field& field, std::uint32_t index);

}  // namespace greynic::zero
