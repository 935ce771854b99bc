#pragma once

/// Copies bytes out of an arena without its owner's help: what a mapping, process_vm_readv and an
/// RDMA READ all do.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::zero {

/// A piece to copy; place and size are multiples of 8.
struct Piece {
  bool in_owner = false;     ///< `offset` is an address in the owner's memory
  std::uint64_t offset = 0;  ///< in the arena
  std::span<std::byte> into;
};

class Source {
 public:
  virtual ~Source() = default;
  /// Copies the pieces one after the other: no byte of a piece is older than one of the piece
  /// before it. Each aligned word of 8 bytes is copied whole. kIo when the memory is gone.
  [[nodiscard]] virtual Result<void> read(std::span<const Piece> pieces) = 0;
  /// The arena where it is mapped here, for as long as the source lives; empty where it is not.
  [[nodiscard]] virtual std::span<const std::byte> memory() const { return {}; }
  /// Pieces with `in_owner` can be read.
  [[nodiscard]] virtual bool reads_owner() const { return false; }
  /// What a READ costs besides its bytes, and how many bytes cost as much: whether to read across a
  /// gap.
  [[nodiscard]] virtual std::uint64_t gap_bytes() const { return 256; }
};

/// An arena in a file of this machine, mapped read-only. kBadInput when it is no file or empty; kIo
/// from reads once it has shrunk.
[[nodiscard]] Result<std::unique_ptr<Source>> map_region(const std::string& path);

/// An arena in a sealed memfd, which this takes over, and its owner's own memory where `owner` is
/// not 0. kBadInput when the file could be cut: it needs F_SEAL_SHRINK.
[[nodiscard]] Result<std::unique_ptr<Source>> map_memory(int file, pid_t owner = 0);

/// Memory that lives as long as the source.
[[nodiscard]] std::unique_ptr<Source> memory_source(std::span<const std::byte> memory);

/// An arena in the memory of a running process, read by process_vm_readv. kMissing when this user
/// may not, kIo when the process is gone.
struct FoundArena {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
[[nodiscard]] Result<std::vector<FoundArena>> find_arenas(pid_t process);
[[nodiscard]] std::unique_ptr<Source> process_source(pid_t process, const FoundArena& arena);

}  // namespace greynic::zero
