#pragma once

/// What one perftest report says, before it is put into greynic's words. The text and the JSON
/// reader both produce it, settings.cc translates it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "greynic/results/perftest.h"

namespace greynic::results {

/// Columns of perftest's tables that are no measure.
namespace perftest_column {
inline constexpr std::string_view kBytes = "bytes";
inline constexpr std::string_view kIterations = "iterations";
inline constexpr std::string_view kServiceLevel = "service_level";
inline constexpr std::string_view kDeviation = "latency_us_deviation";
}  // namespace perftest_column

struct PerftestRow {
  std::size_t line = 0;                  ///< 1-based, for messages
  std::map<std::string, double> values;  ///< by measure name or perftest_column, in greynic's units
  LatencyHistogram samples;              ///< from --report-unsorted and --report-histogram
};

struct PerftestReport {
  std::string title;  ///< "RDMA_Write Bidirectional BW Test"; may be empty
  std::map<std::string, std::string> settings;  ///< header fields by normal_name
  std::vector<PerftestRow> rows;
  std::string failure;  ///< why the test broke; empty when it did not
};

/// "TX depth", "TX_depth " -> "tx depth": text and JSON spell the same fields in two ways.
std::string normal_name(std::string_view name);

/// A whole text as a finite number.
std::optional<double> parse_number(std::string_view text);
std::string_view trimmed(std::string_view text);

Result<std::vector<PerftestReport>> read_perftest_text(std::string_view text,
                                                       const std::string& source,
                                                       std::vector<std::string>& warnings);
Result<std::vector<PerftestReport>> read_perftest_json(std::string_view text,
                                                       const std::string& source,
                                                       const PerftestOptions& options,
                                                       std::vector<std::string>& warnings);

/// One observation for each row, repeats not yet counted. `from_name`: settings of the file's name.
Result<std::vector<Observation>> translate(const PerftestReport& report,
                                           const Configuration& from_name,
                                           const std::string& source);

/// Settings that the pattern finds in a path. kBadInput when it does not fit.
Result<Configuration> settings_from_name(const std::string& pattern, const std::string& path);

}  // namespace greynic::results
