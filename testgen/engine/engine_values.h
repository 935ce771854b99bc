#pragma once

/// Levels of all parameters numbered through: the engine works on these value numbers, so that a
/// row is a bit set and "which pairs are open" is a bit matrix.

#include <cstdint>
#include <vector>

#include "greynic/testgen/cover.h"

namespace greynic::testgen {

using Value = std::uint32_t;
inline constexpr Value kNoValue = ~Value{0};

/// Numbers the levels of each parameter in turn; parameter p owns [first(p), first(p + 1)).
class ValueIndex {
 public:
  explicit ValueIndex(const std::vector<Parameter>& parameters) {
    first_.reserve(parameters.size() + 1);
    for (std::uint32_t p = 0; p < parameters.size(); ++p) {
      first_.push_back(static_cast<Value>(parameter_.size()));
      parameter_.insert(parameter_.end(), parameters[p].level_count, p);
    }
    first_.push_back(static_cast<Value>(parameter_.size()));
  }
  [[nodiscard]] Value value(std::uint32_t parameter, std::uint16_t level) const {
    return first_[parameter] + level;
  }
  [[nodiscard]] std::uint32_t parameter(Value v) const { return parameter_[v]; }
  [[nodiscard]] std::uint16_t level(Value v) const {
    return static_cast<std::uint16_t>(v - first_[parameter_[v]]);
  }
  [[nodiscard]] Value first(std::uint32_t parameter) const { return first_[parameter]; }
  [[nodiscard]] std::uint32_t level_count(std::uint32_t parameter) const {
    return first_[parameter + 1] - first_[parameter];
  }
  [[nodiscard]] std::uint32_t parameters() const {
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  [[nodiscard]] std::uint32_t values() const {
    return static_cast<std::uint32_t>(parameter_.size());
  }
  /// 64-bit words of a set of values.
  [[nodiscard]] std::size_t words() const { return (parameter_.size() + 63) / 64; }

 private:
  std::vector<Value> first_;
  std::vector<std::uint32_t> parameter_;
};

}  // namespace greynic::testgen
