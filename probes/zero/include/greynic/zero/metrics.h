#pragma once

/// Metrics in C++, over greynic_zero.h: a counter, a gauge or a histogram is one word or a few in an
/// arena of this process, and writing it is one instruction. Each object publishes itself and ends
/// with its scope; its last value stays readable for a while (the arena's linger).
///
///     zero::Counter requests({.name = "requests", .unit = "", .help = "Taken since the start"});
///     requests.add();
///     { zero::Call<Usage> call(kUsage, "id=\"7\""); call->bytes = 12; }   // milliseconds
///
/// A metric that finds no room counts on in memory of its own, which nobody reads; published()
/// tells. Needs no other part of greynic than libgreynic_zero.

#include <cstdint>
#include <string>
#include <utility>

#include "greynic_zero.h"

namespace greynic::zero {

struct Name {
  std::string name;
  std::string unit = {};
  std::string help = {};
  std::string labels = {};  ///< key="value",...
  zero_class metric_class = ZERO_PERSISTENT;
};

/// A published structure of one field; moves, and ends its row when it goes.
class OneField {
 public:
  OneField(OneField&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), published_(other.published_) {}
  OneField& operator=(OneField&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(published_, other.published_);
    return *this;
  }
  ~OneField() {
    if (published_ && memory_ != nullptr) {
      zero_free(memory_);
    } else {
      delete[] memory_;
    }
  }
  [[nodiscard]] bool published() const { return published_; }

 protected:
  OneField(const Name& name, zero_type type, zero_kind kind, std::uint32_t words,
           std::uint32_t parameter);
  [[nodiscard]] std::uint64_t* words() const { return memory_; }

 private:
  std::uint64_t* memory_ = nullptr;
  bool published_ = false;
};

class Counter : public OneField {
 public:
  explicit Counter(const Name& name) : OneField(name, ZERO_U64, ZERO_COUNTER, 1, 0) {}
  void add(std::uint64_t by = 1) { zero_add(words(), by); }
};

class Gauge : public OneField {
 public:
  explicit Gauge(const Name& name) : OneField(name, ZERO_F64, ZERO_GAUGE, 1, 0) {}
  void set(double to) { zero_set_f64(reinterpret_cast<double*>(words()), to); }
};

/// Log-linear: 2^kBits buckets for each doubling, so a value is known to 12.5 %.
class Histogram : public OneField {
 public:
  static constexpr unsigned kBits = 3;
  explicit Histogram(const Name& name)
      : OneField(name, ZERO_U64, ZERO_HISTOGRAM, ZERO_HISTOGRAM_WORDS(kBits), kBits) {}
  void record(std::uint64_t value) { zero_record(words(), kBits, value); }
};

/// A structure of a function of milliseconds: published by the constructor, ended by the
/// destructor. Null inside when the arena is full.
template <typename T>
class Call {
 public:
  explicit Call(const zero_schema& schema, const char* labels = "")
      : memory_(static_cast<T*>(zero_begin(&schema, labels))) {}
  Call(Call&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  Call& operator=(Call&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Call() {
    if (memory_ != nullptr) zero_end(memory_);
  }
  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }
  T* operator->() const { return memory_; }
  T& operator*() const { return *memory_; }

 private:
  T* memory_;
};

inline OneField::OneField(const Name& name, zero_type type, zero_kind kind, std::uint32_t words,
                          std::uint32_t parameter) {
  // The library keeps schemas by address, so this one stays for good; equal ones share their bytes.
  struct Kept {
    Name name;
    zero_field field{};
    zero_schema schema{};
  };
  auto* const kept = new Kept{name, {}, {}};
  kept->field = {kept->name.name.c_str(),
                 static_cast<std::uint32_t>(type),
                 static_cast<std::uint32_t>(kind),
                 0,
                 words,
                 parameter,
                 kept->name.unit.c_str(),
                 kept->name.help.c_str(),
                 ""};
  kept->schema = {kept->name.name.c_str(),
                  kept->name.help.c_str(),
                  &kept->field,
                  1,
                  static_cast<std::uint32_t>(words * sizeof(std::uint64_t)),
                  ZERO_PLAIN};
  void* const memory = zero_malloc_in(name.metric_class, words * sizeof(std::uint64_t));
  if (memory != nullptr && zero_publish(memory, &kept->schema, name.labels.c_str()) == 0) {
    memory_ = static_cast<std::uint64_t*>(memory);
    published_ = true;
    return;
  }
  if (memory != nullptr) zero_free(memory);
  delete kept;
  memory_ = new std::uint64_t[words]();
}

}  // namespace greynic::zero
