#pragma once

/// A row of counters that belong together, in the arena of class system: a whole structure.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "greynic_zero.h"

namespace greynic::rnic {

/// A counter on its way out.
struct Counter {
  std::string name;  ///< made fit for a metric
  std::string unit, labels;
  zero_kind kind = ZERO_COUNTER;
};

/// A name or a label's value that a table of metrics takes.
[[nodiscard]] std::string fit_name(std::string_view raw);
[[nodiscard]] std::string fit_label(std::string_view raw);

/// What rows with the same counters share. The library keeps schemas by address: one lives for good.
class RowSchema {
 public:
  RowSchema(std::string name, std::string help, std::vector<Counter> counters);
  RowSchema(const RowSchema&) = delete;
  RowSchema& operator=(const RowSchema&) = delete;
  [[nodiscard]] const zero_schema& schema() const { return schema_; }

 private:
  std::string name_, help_;
  std::vector<Counter> counters_;
  std::vector<zero_field> fields_;
  zero_schema schema_{};
};

class PublishedRow {
 public:
  /// `labels` may be too long: then `short_labels`.
  PublishedRow(const RowSchema& schema, const std::string& labels, const std::string& short_labels);
  PublishedRow(PublishedRow&& other) noexcept;
  PublishedRow& operator=(PublishedRow&& other) noexcept;
  ~PublishedRow();
  [[nodiscard]] bool published() const { return memory_ != nullptr; }
  void write(const std::vector<std::uint64_t>& values);

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};

}  // namespace greynic::rnic
