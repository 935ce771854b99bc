#pragma once

/// Factors and configurations: what is varied, and one way of setting it all.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "greynic/core/result.h"

namespace greynic {

enum class FactorType : std::uint8_t { kNumeric, kCategorical, kBool };

/// A level: numbers are doubles (whole numbers exact to 2^53), categories are text.
using FactorValue = std::variant<bool, double, std::string>;

[[nodiscard]] std::string to_string(const FactorValue& value);

/// Reads text as a level of the given type: "true", "65536", "SEND".
[[nodiscard]] Result<FactorValue> parse_factor_value(FactorType type, std::string_view text);

enum class FactorGroup : std::uint8_t { kVerbs, kESwitch, kHost };

/// A row of the one table of factor names. Campaigns may use other names on exec: targets only.
struct FactorInfo {
  std::string_view name;
  FactorType type;
  FactorGroup group;
  std::string_view unit;                         ///< "bytes", "count", "1/s", "ms"; empty: none
  double minimum;                                ///< numeric only
  double maximum;                                ///< numeric only
  std::span<const std::string_view> categories;  ///< categorical only
  FactorValue standard;                          ///< what a target assumes when it is not set
  std::string_view meaning;
};

[[nodiscard]] std::span<const FactorInfo> known_factors();
[[nodiscard]] const FactorInfo* find_factor(std::string_view name);

/// One level for each factor that is set; sorted by name, so equal settings are equal objects.
class Configuration {
 public:
  Configuration() = default;
  Configuration(std::initializer_list<std::pair<std::string, FactorValue>> levels);

  void set(std::string_view name, FactorValue value);
  void erase(std::string_view name);
  [[nodiscard]] const FactorValue* find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The number set for a factor, else the factor table's standard value, else `fallback`.
  [[nodiscard]] double number(std::string_view name, double fallback = 0.0) const;
  /// The text set for a factor, else the factor table's standard value, else empty.
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, FactorValue>>& levels() const {
    return levels_;
  }
  [[nodiscard]] bool empty() const { return levels_.empty(); }
  /// "message_bytes=65536,transport=RC": canonical, so it serves as a key.
  [[nodiscard]] std::string name() const;
  bool operator==(const Configuration&) const = default;
  auto operator<=>(const Configuration&) const = default;

 private:
  std::vector<std::pair<std::string, FactorValue>> levels_;
};

/// Reads "a=1,b=SEND". Types come from the factor table; unknown names take number, bool, then
/// text.
[[nodiscard]] Result<Configuration> parse_configuration(std::string_view text);

/// Four mask sequences a request and its answer cross.
enum class Hop : std::uint8_t { kClientEncap, kServerDecap, kServerEncap, kClientDecap };
[[nodiscard]] std::string_view to_string(Hop hop);           ///< "client_encap"
[[nodiscard]] std::string_view mask_factor(Hop hop);         ///< "client_encap_masks"
[[nodiscard]] Result<Hop> hop_named(std::string_view name);  ///< kBadInput: says which there are

}  // namespace greynic
