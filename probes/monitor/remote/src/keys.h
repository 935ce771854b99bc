#pragma once

/// Where a caller may READ: for each arena that it may see its address and its key, in memory that
/// the caller READs too. So after a queue pair is joined, nobody is asked for anything. The table is
/// changed as an arena's: its epoch and a row's generation are odd meanwhile, and only grow.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "rdma.h"

namespace greynic::remote {

struct KeyRow {
  std::uint64_t generation = 0;   ///< odd: it is being changed
  std::uint64_t incarnation = 0;  ///< of the arena; 0: the directory
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t key = 0;
  std::uint64_t is_there = 0;  ///< 0: withdrawn, or never used
  std::uint64_t spare[2] = {};
};
struct KeyTable {
  char magic[8] = {};
  std::uint64_t epoch = 0;
  std::uint64_t row_count = 0;  ///< rows that were ever used
  std::uint64_t spare[5] = {};
};
inline constexpr char kKeyMagic[] = "GNKEYS01";
inline constexpr std::uint64_t kKeyRows = 4097;  ///< all that a host may have

/// The table of a session, at the agent's end.
class Keys {
 public:
  /// In memory that `queue` opens to its other end.
  [[nodiscard]] static Result<Keys> create(const RdmaQueue& queue);
  [[nodiscard]] Place place() const;
  /// kTooBig: the table is full.
  Result<void> show(std::uint64_t incarnation, const Place& place);
  /// To be called before the memory is withdrawn.
  void withdraw(std::uint64_t incarnation);

 private:
  explicit Keys(verbs::MemoryRegion memory) : memory_(std::move(memory)) {}
  [[nodiscard]] KeyTable& table() const;
  [[nodiscard]] KeyRow& row(std::uint64_t index) const;
  void change(std::uint64_t index, const KeyRow& to);

  verbs::MemoryRegion memory_;
  std::map<std::uint64_t, std::uint64_t> rows_;  ///< by incarnation
};

/// The same at the collector's end, which does not trust it.
class KeysReader {
 public:
  using Read = std::function<Result<void>(const Place&, std::span<const zero::Piece>)>;
  KeysReader() = default;
  explicit KeysReader(const Place& at) : at_(at) {}
  /// Nothing: it is not there, or may not be seen. kIo: the table is none, or `read` fails.
  [[nodiscard]] Result<std::optional<Place>> find(std::uint64_t incarnation, const Read& read);

 private:
  Result<void> refresh(const Read& read);

  Place at_;
  std::uint64_t epoch_ = 1;  ///< of what is known; odd: nothing
  std::map<std::uint64_t, Place> known_;
};

}  // namespace greynic::remote
