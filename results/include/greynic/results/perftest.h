#pragma once

/// perftest logs as observations: the text tables of every perftest version and the JSON of the
/// later ones, also where it is no valid JSON. One row of a table (one message size) is one
/// observation; settings come from the log's header and from the file name.
/// docs/formats/perftest.md lists every column, setting and unit.
///
/// perftest's "MB/sec" is 2^20 bytes a second. Its JSON names no unit: it is told from the message
/// rate and size, which must agree with the bandwidth in one of the two units perftest can use.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::results {

enum class PerftestUnit { kMebibytes, kGigabits };
/// "MiB/s" or "Gb/s".
[[nodiscard]] std::optional<PerftestUnit> perftest_unit_named(std::string_view name);

struct PerftestOptions {
  /// Settings in the file's name: "cen_{client_encap_masks}_{*}.log". `{factor}` takes one or more
  /// characters, `{*}` any. A pattern with '/' is held against as many parts of the path. Empty:
  /// none.
  std::string name_pattern;
  /// Bandwidth unit of JSON logs that hold nothing to tell it from (--output=bandwidth).
  std::optional<PerftestUnit> json_unit;
};

struct PerftestImport {
  std::vector<Observation> observations;  ///< in the order of the files and of their rows
  std::vector<std::string> warnings;      ///< for people: what was left out and why
};

/// Reads logs. A configuration that comes again is the next repeat of it. A log of a test that
/// broke gives one observation with outcome kFailed. Errors: kBadInput names file, line and remedy:
/// no result in it, a torn row, an unknown column, a name that does not fit the pattern, a header
/// that contradicts the name.
[[nodiscard]] Result<PerftestImport> import_perftest(std::span<const std::string> paths,
                                                     const PerftestOptions& options = {});

/// The same for one log held in memory; `source` is its path, for messages and the pattern.
[[nodiscard]] Result<PerftestImport> parse_perftest(std::string_view text,
                                                    const std::string& source,
                                                    const PerftestOptions& options = {});

}  // namespace greynic::results
