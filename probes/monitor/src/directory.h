#pragma once

/// The directory of a host: which arenas there are, in a memfd that the agent writes and collectors
/// map. docs/formats/arena.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/zero/source.h"
#include "greynic_zero_format.h"

namespace greynic::monitor {

class Directory {
 public:
  static constexpr std::uint32_t kRows = 4096;
  [[nodiscard]] static Result<std::unique_ptr<Directory>> create();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// The row that the arena got; nothing when all are taken.
  [[nodiscard]] std::optional<std::uint32_t> add(const zero_directory_row& row);
  void end(std::uint32_t row, std::uint64_t now_ns);
  void remove(std::uint32_t row);
  void beat();
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::span<const std::byte> memory() const;
  [[nodiscard]] std::uint64_t incarnation() const;

 private:
  Directory(int file, void* memory) : file_(file), memory_(memory) {}
  [[nodiscard]] zero_header& header() const { return *static_cast<zero_header*>(memory_); }
  [[nodiscard]] zero_directory_row& row(std::uint32_t index) const;
  void change(std::uint32_t index, zero_directory_row row);

  int file_;
  void* memory_;
};

/// A collector's view of it.
class DirectoryReader {
 public:
  /// kBadInput when it is no directory.
  [[nodiscard]] static Result<DirectoryReader> open(std::unique_ptr<zero::Source> source);
  /// Takes the file over.
  [[nodiscard]] static Result<DirectoryReader> open(int file);

  /// Rows that are whole, by their index; kBadInput when it is none any more.
  struct Row {
    std::uint32_t index = 0;
    zero_directory_row row{};
  };
  [[nodiscard]] Result<std::span<const Row>> look();
  [[nodiscard]] std::uint64_t heartbeat_ns() const { return header_.heartbeat_ns; }

 private:
  std::unique_ptr<zero::Source> source_;
  zero_header header_{};
  std::vector<zero_directory_row> raw_;
  std::vector<Row> rows_;
};

}  // namespace greynic::monitor
