#include "keys.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

namespace greynic::remote {
namespace {

constexpr int kTries = 64;

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

std::span<std::byte> bytes_of(KeyTable& table) {
  return std::as_writable_bytes(std::span(&table, 1));
}

}  // namespace

Result<Keys> Keys::create(const RdmaQueue& queue) {
  auto memory = verbs::MemoryRegion::create(
      queue.pd(), sizeof(KeyTable) + kKeyRows * sizeof(KeyRow), {.remote_read = true});
  if (!memory) return pass_on(memory);
  Keys keys(std::move(*memory));
  std::memcpy(keys.table().magic, kKeyMagic, sizeof keys.table().magic);
  return keys;
}

KeyTable& Keys::table() const { return *reinterpret_cast<KeyTable*>(memory_.address()); }

KeyRow& Keys::row(std::uint64_t index) const {
  return reinterpret_cast<KeyRow*>(memory_.address() + sizeof(KeyTable))[index];
}

Place Keys::place() const {
  return {reinterpret_cast<std::uintptr_t>(memory_.address()), memory_.remote_key(),
          memory_.bytes().size()};
}

void Keys::change(std::uint64_t index, const KeyRow& to) {
  KeyRow& at = row(index);
  const std::uint64_t generation = at.generation;
  store(table().epoch, table().epoch + 1);
  store(at.generation, generation + 1);
  std::atomic_thread_fence(std::memory_order_release);
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof to / 8>>(to);
  auto* const target = reinterpret_cast<std::uint64_t*>(&at);
  for (std::size_t i = 1; i < words.size(); ++i) store(target[i], words[i]);
  if (index >= table().row_count) store(table().row_count, index + 1);
  store(at.generation, generation + 2);
  store(table().epoch, table().epoch + 1);
}

Result<void> Keys::show(std::uint64_t incarnation, const Place& place) {
  auto found = rows_.find(incarnation);
  if (found == rows_.end()) {
    std::uint64_t free = 0;
    while (free < kKeyRows && row(free).is_there != 0) ++free;
    if (free == kKeyRows) return fail(ErrorCode::kTooBig, "no more arenas fit into the table");
    found = rows_.emplace(incarnation, free).first;
  }
  change(found->second, {.incarnation = incarnation,
                         .address = place.address,
                         .bytes = place.bytes,
                         .key = place.key,
                         .is_there = 1});
  return {};
}

void Keys::withdraw(std::uint64_t incarnation) {
  const auto found = rows_.find(incarnation);
  if (found == rows_.end()) return;
  change(found->second, {});
  rows_.erase(found);
}

Result<std::optional<Place>> KeysReader::find(std::uint64_t incarnation, const Read& read) {
  if (auto fresh = refresh(read); !fresh) return pass_on(fresh);
  const auto found = known_.find(incarnation);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

Result<void> KeysReader::refresh(const Read& read) {
  const auto malformed = [] {
    return fail(ErrorCode::kIo, "the table of keys is malformed; the other end is no greynic");
  };
  std::vector<KeyRow> rows;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    KeyTable before, after;
    const zero::Piece first{false, 0, bytes_of(before)};
    if (auto got = read(at_, std::span(&first, 1)); !got) return got;
    if (std::memcmp(before.magic, kKeyMagic, sizeof before.magic) != 0 ||
        before.row_count > kKeyRows) {
      return malformed();
    }
    if (before.epoch == epoch_) return {};
    rows.resize(before.row_count);
    const zero::Piece whole[] = {{false, sizeof(KeyTable), std::as_writable_bytes(std::span(rows))},
                                 {false, 0, bytes_of(after)}};
    if (auto got = read(at_, whole); !got) return got;
    if (before.epoch % 2 != 0 || after.epoch != before.epoch) continue;
    known_.clear();
    for (const KeyRow& row : rows) {
      if (row.is_there == 0) continue;
      const bool is_whole = row.generation % 2 == 0 && row.key <= UINT32_MAX && row.bytes > 0 &&
                            row.bytes <= UINT64_MAX - row.address;
      const Place place{row.address, static_cast<std::uint32_t>(row.key), row.bytes};
      if (!is_whole || !known_.try_emplace(row.incarnation, place).second) return malformed();
    }
    epoch_ = before.epoch;
    return {};
  }
  return fail(ErrorCode::kIo, "the table of keys is never whole");
}

}  // namespace greynic::remote
