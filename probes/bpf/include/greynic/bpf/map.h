#pragma once

/// Maps that programs in the kernel share with us, by type of key and value. Objects hand them out
/// (object.h) after they have compared the sizes; a map lives as long as its object.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "greynic/core/result.h"

struct ring_buffer;

namespace greynic::bpf {

/// How many CPUs a per-CPU map has values for.
[[nodiscard]] std::size_t possible_cpus();

/// A map without its types. Errors are kRefused with the kernel's reason.
class RawMap {
 public:
  explicit RawMap(int descriptor) : descriptor_(descriptor) {}
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// false when there is no such key. A per-CPU map fills possible_cpus() values.
  [[nodiscard]] bool look_up(const void* key, void* value) const;
  [[nodiscard]] Result<void> put(const void* key, const void* value, bool only_new) const;
  /// false when there was no such key.
  bool remove(const void* key) const;
  /// The key behind `key` (the first for null); false at the end.
  [[nodiscard]] bool next_key(const void* key, void* next) const;

 private:
  int descriptor_ = -1;
};

/// A hash map or an array.
template <typename Key, typename Value>
class Map {
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);

 public:
  explicit Map(int descriptor) : map_(descriptor) {}
  [[nodiscard]] int descriptor() const { return map_.descriptor(); }
  [[nodiscard]] std::optional<Value> look_up(const Key& key) const {
    Value value;
    if (!map_.look_up(&key, &value)) return std::nullopt;
    return value;
  }
  Result<void> put(const Key& key, const Value& value) const {
    return map_.put(&key, &value, false);
  }
  /// kRefused also when the key is there.
  Result<void> put_new(const Key& key, const Value& value) const {
    return map_.put(&key, &value, true);
  }
  bool remove(const Key& key) const { return map_.remove(&key); }
  /// All entries. Those that programs add or remove meanwhile may or may not be among them.
  [[nodiscard]] std::vector<std::pair<Key, Value>> entries() const {
    std::vector<std::pair<Key, Value>> found;
    Key key;
    for (bool more = map_.next_key(nullptr, &key); more;) {
      if (auto value = look_up(key)) found.emplace_back(key, *value);
      const Key last = key;
      more = map_.next_key(&last, &key);
    }
    return found;
  }

 private:
  RawMap map_;
};

/// An array with one value for each CPU; sizes of values are multiples of 8.
template <typename Value>
class PerCpuArray {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % 8 == 0);

 public:
  explicit PerCpuArray(int descriptor) : map_(descriptor) {}
  [[nodiscard]] int descriptor() const { return map_.descriptor(); }
  /// One value for each possible CPU.
  [[nodiscard]] Result<std::vector<Value>> look_up(std::uint32_t index) const {
    std::vector<Value> values(possible_cpus());
    if (map_.look_up(&index, values.data())) return values;
    return fail(ErrorCode::kInternal, "a per-CPU array has no such index");
  }
  Result<void> put(std::uint32_t index, std::span<const Value> values) const {
    return map_.put(&index, values.data(), false);
  }

 private:
  RawMap map_;
};

/// The memory of a map; unmapped with the last copy.
[[nodiscard]] Result<std::shared_ptr<void>> map_memory(int descriptor, std::size_t bytes);

/// An array of BPF_F_MMAPABLE: its values are memory that programs write while we look. Sizes of
/// values are multiples of 8.
template <typename Value>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % 8 == 0);

 public:
  [[nodiscard]] static Result<MappedArray> create(int descriptor, std::size_t entries) {
    auto memory = map_memory(descriptor, entries * sizeof(Value));
    if (!memory) return tl::unexpected<Error>(memory.error());
    MappedArray made;
    made.memory_ = std::move(*memory);
    made.entries_ = entries;
    return made;
  }
  [[nodiscard]] std::size_t size() const { return entries_; }
  Value& operator[](std::size_t index) { return static_cast<Value*>(memory_.get())[index]; }

 private:
  std::shared_ptr<void> memory_;
  std::size_t entries_ = 0;
};

/// Records that programs send, in order.
class RingBuffer {
 public:
  /// `take` gets each record; it is called by poll() and consume() alone.
  [[nodiscard]] static Result<RingBuffer> create(
      int map_descriptor, std::function<void(std::span<const std::byte>)> take);
  RingBuffer(RingBuffer&& other) noexcept;
  RingBuffer& operator=(RingBuffer&& other) noexcept;
  ~RingBuffer();
  /// Waits for records for at most so long, and hands over all that are there. How many.
  [[nodiscard]] Result<std::size_t> poll(int timeout_ms);
  /// The same without waiting.
  [[nodiscard]] Result<std::size_t> consume() { return poll(0); }

 private:
  RingBuffer() = default;
  struct Free {
    void operator()(ring_buffer* ring) const;
  };
  std::unique_ptr<std::function<void(std::span<const std::byte>)>> take_;
  std::unique_ptr<ring_buffer, Free> ring_;
};

}  // namespace greynic::bpf
