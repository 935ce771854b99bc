#pragma once

/// One point in InfluxDB's line protocol: `measurement,tag=value field=1,count=2i 1600000000000`.
///
/// What the protocol cannot say is left out, so that one odd value never costs the whole batch: a
/// tag without a value, a number that is not finite. There are no unsigned numbers either (version
/// 1 refuses the suffix "u"): count() stops at 2^63-1.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace greynic::outlets {

class InfluxPoint {
 public:
  explicit InfluxPoint(std::string_view measurement);

  InfluxPoint& tag(std::string_view key, std::string_view value);
  InfluxPoint& number(std::string_view key, double value);
  InfluxPoint& count(std::string_view key, std::uint64_t value);
  InfluxPoint& integer(std::string_view key, std::int64_t value);
  InfluxPoint& flag(std::string_view key, bool value);
  InfluxPoint& text(std::string_view key, std::string_view value);

  /// The line with its line break; empty when the point has no field. Without a time, the
  /// database's own.
  [[nodiscard]] std::string line(std::optional<std::int64_t> unix_ns = std::nullopt) const;

 private:
  InfluxPoint& field(std::string_view key, std::string_view value);

  std::string head_;  ///< measurement and tags
  std::string fields_;
};

}  // namespace greynic::outlets
