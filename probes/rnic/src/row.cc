#include "row.h"

#include <algorithm>
#include <utility>

namespace greynic::rnic {

std::string fit_name(std::string_view raw) {
  std::string name(raw.substr(0, 63));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) name.insert(0, "_");
  return name.substr(0, 63);
}

std::string fit_label(std::string_view raw) {
  std::string value(raw.substr(0, 64));
  for (char& c : value) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '_';
  }
  return value;
}

RowSchema::RowSchema(std::string name, std::string help, std::vector<Counter> counters)
    : name_(std::move(name)), help_(std::move(help)), counters_(std::move(counters)) {
  for (const Counter& one : counters_) {
    const auto offset = static_cast<std::uint32_t>(fields_.size() * 8);
    fields_.push_back({one.name.c_str(), ZERO_U64, static_cast<std::uint32_t>(one.kind), offset, 1,
                       0, one.unit.c_str(), "", one.labels.c_str()});
  }
  schema_ = {name_.c_str(),
             help_.c_str(),
             fields_.data(),
             static_cast<std::uint32_t>(fields_.size()),
             static_cast<std::uint32_t>(fields_.size() * 8),
             ZERO_WHOLE};
}

PublishedRow::PublishedRow(const RowSchema& schema, const std::string& labels,
                           const std::string& short_labels)
    : size_(schema.schema().size) {
  memory_ = zero_malloc_in(ZERO_SYSTEM, zero_whole_size(size_));
  if (memory_ == nullptr) return;
  if (zero_publish(memory_, &schema.schema(), labels.c_str()) == 0 ||
      zero_publish(memory_, &schema.schema(), short_labels.c_str()) == 0) {
    return;
  }
  zero_free(memory_);
  memory_ = nullptr;
}

PublishedRow::PublishedRow(PublishedRow&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}

PublishedRow& PublishedRow::operator=(PublishedRow&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

PublishedRow::~PublishedRow() {
  if (memory_ != nullptr) zero_free(memory_);
}

void PublishedRow::write(const std::vector<std::uint64_t>& values) {
  if (memory_ != nullptr) zero_write(memory_, values.data(), size_);
}

}  // namespace greynic::rnic
